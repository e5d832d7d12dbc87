"""Table of every key of a rig file with its rule, made from the records of the code."""

from pydantic.fields import FieldInfo

from d3s.rig import Calibration, Correction, LensMaps, Optics, Provenance, RawCamera, Stereo

TABLES = {
    "optics": Optics,
    "calibration": Calibration,
    "calibration.lenses": LensMaps,
    "calibration.corrections": Correction,
    "calibration.provenance": Provenance,
    "stereo": Stereo,
    "stereo.left": RawCamera,
}
SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
NESTED = ("lenses", "corrections", "provenance", "left", "right")  # have rows of their own


def _rule(field: FieldInfo) -> str:
    return ", ".join(
        f"{sign} {getattr(limit, name):g}"
        for limit in field.metadata
        for name, sign in SIGNS.items()
        if getattr(limit, name, None) is not None
    )


def rig_fields() -> str:
    """Markdown table with one row for each key."""
    rows = [
        f"| `{table}` | `{name}` | {_rule(field)} | {field.description} |"
        for table, record in TABLES.items()
        for name, field in record.model_fields.items()
        if name not in NESTED
    ]
    return "\n".join(["| table | key | rule | what it is |", "|---|---|---|---|", *rows])
