"""The paper's figures and tables again, one item each: computed, drawn, and held beside it."""
