"""Workbooks (xlsx) for tests."""

import io
import zipfile
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def cell(place, value):
    if value is None:
        return ""
    if isinstance(value, tuple):  # a serial date, in the style for dates
        return f'<c r="{place}" s="1"><v>{value[0]}</v></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def sheet(rows):
    lines = (
        f'<row r="{number}">'
        + "".join(cell(f"{'ABCDEFG'[k]}{number}", value) for k, value in enumerate(row))
        + "</row>"
        for number, row in enumerate(rows, start=1)
    )
    return f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def workbook(*sheets, packed=False):
    """Write a workbook by the standard, without a library; a sheet is a list of rows, or XML."""
    numbers = range(1, len(sheets) + 1)
    sheets = [sheet(rows) if isinstance(rows, list) else rows for rows in sheets]
    files = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{KIND}.sheet.main+xml"/>'
        "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        + "".join(f'<sheet name="s{k}" sheetId="{k}" r:id="r{k}"/>' for k in numbers)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="style" Type="{OFFICE}/styles" Target="styles.xml"/>'
        + "".join(
            f'<Relationship Id="r{k}" Type="{OFFICE}/worksheet" Target="worksheets/s{k}.xml"/>'
            for k in numbers
        )
        + "</Relationships>",
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="2"><xf numFmtId="0"/>'
        '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
        **{f"xl/worksheets/s{k}.xml": rows for k, rows in zip(numbers, sheets, strict=True)},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(
        buffer, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    ) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()
