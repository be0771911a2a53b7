"""Reader for delimited text such as CSV in which all features are numbers.

pandas parses blocks of simple rows, that is, numbers and a label without quotes.  Other blocks are parsed row by row,
so that error messages can name the line.  Quoted fields may contain line breaks.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from klr_bench.datasets.class_labels import LARGEST, Labels, parse_number
from klr_bench.datasets.compression import LONGEST_LINE, not_decodable
from klr_bench.datasets.layout import SET_LABEL, Layout, OpenQuoteError, fields_of, no_labeled_row, not_delimited
from klr_bench.datasets.readers.chunks import Block, Chunk, blocks, type_of
from klr_bench.errors import fail, sanitize

EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)
"""Options for pandas to round numbers as Python does."""


def read_chunks(path: Path, layout: Layout, labels: Labels, dtype: Any = None) -> Iterator[Chunk]:
    """Parse a plain or compressed CSV file, and yield its rows in chunks.

    `dtype` is the type of the features; None is float32, or float64 if float32 cannot resolve the values of the first
    block of lines.  Raises KlrBenchError that names the file and the line, and DamagedFileError.
    """
    header, empty = layout.header is not None, True
    open_row: OpenQuoteError | None = None
    for block in blocks(path, layout.encoding, any_line_end=True):
        if (n_skipped := layout.n_skipped + 1 - block.first) > 0:
            text = block.text.split(b"\n", n_skipped)[-1]
            block = replace(block, first=block.first + n_skipped, text=text)
        if open_row:
            block = replace(block, first=open_row.line, text=open_row.text + block.text)
        chunk, open_row = None if header else _simple_rows(block, layout, labels), None
        if chunk is None:
            chunk, open_row, header = _any_rows(block, layout, labels, header=header)
        if open_row and len(open_row.text) > LONGEST_LINE:
            break
        empty = empty and not len(chunk.codes)
        dtype = dtype or type_of(chunk)
        yield replace(chunk, X=chunk.X.astype(dtype or np.float32, copy=False))
    if open_row:
        raise not_delimited(path, open_row)
    if empty:
        raise no_labeled_row(path, layout, labels)


def _simple_rows(block: Block, layout: Layout, labels: Labels) -> Chunk | None:
    """Parse a block of lines with pandas; return None if any row needs the slower parser."""
    n, label, text = layout.n_columns, layout.label, block.text
    if b'"' in text or b"\0" in text:
        return None
    options: dict[str, Any] = {
        "sep": r"\s+" if layout.delimiter == " " else layout.delimiter,
        "quoting": csv.QUOTE_NONE,
        **EXACT,
    }
    options |= {"header": None, "names": range(n), "na_filter": False, "skipinitialspace": True}
    types = {column: str if column == label else np.float64 for column in range(n)}
    try:
        table = pd.read_csv(io.BytesIO(text), dtype=types, **options)
        fields = len(text.split()) if layout.delimiter == " " else text.count(layout.delimiter.encode()) + len(table)
        X = np.ascontiguousarray(table.drop(columns=label), dtype=np.float64)
        if fields != n * len(table) or not (np.abs(X) <= LARGEST).all():
            return None
        places, texts = pd.factorize(table[label])
        for count, spelling in zip(np.bincount(places), texts, strict=True):
            labels.drops(spelling.strip(), int(count))
        codes = np.array([labels.code(spelling.strip()) for spelling in texts], dtype=np.int32)[places]
    except ValueError:
        return None
    return Chunk(codes[codes >= 0], X[codes >= 0], 0, n - 2)


def _any_rows(
    block: Block, layout: Layout, labels: Labels, *, header: bool
) -> tuple[Chunk, OpenQuoteError | None, bool]:
    """Parse a block of lines of a CSV file row by row.

    Also return an error if the last row has an unclosed quote, and True if the header has not been reached yet.
    """
    n, label, where = layout.n_columns, layout.label, f"{block.path}, line"
    lines = block.text.splitlines(keepends=True)
    codes, rows, open_row = [], [], None
    try:
        texts = (line.decode() for line in lines)
        for line, fields in fields_of(texts, layout.delimiter, block.first):
            layout.check_row(block.path, line, fields)
            if header:
                header = False
                continue
            if labels.drops(fields[label]):
                continue
            numbers = [parse_number(field) for field in fields]
            for column, value in enumerate(numbers):
                if column != label and (value is None or not abs(value) <= LARGEST):
                    fail(
                        f"{where} {line}, {layout.describe(column)}: {sanitize(repr(fields[column]))} is not a number "
                        f"between -{LARGEST:g} and {LARGEST:g}; correct or remove the row."
                    )
            rows.append(numbers[:label] + numbers[label + 1 :])
            try:
                codes.append(labels.code(fields[label]))
            except ValueError as error:
                advice = f"correct the line, or set {SET_LABEL} if the labels are in another column."
                fail(f"{where} {line}: {error} ({layout.describe(label)}); {advice}")
    except OpenQuoteError as error:
        open_row = error
        open_row.text = b"".join(lines[error.line - block.first :])
    except csv.Error as error:
        raise not_delimited(block.path, error) from error
    except UnicodeDecodeError as error:
        raise not_decodable(block.path, None) from error
    X = np.array(rows, dtype=np.float64).reshape(len(rows), n - 1)
    return Chunk(np.array(codes, dtype=np.int32), X, 0, n - 2), open_row, header
