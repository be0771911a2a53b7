"""Detect the delimiter, the header and the label column of delimited text such as CSV."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path

from klr_bench.datasets.amounts import parse_amount
from klr_bench.datasets.class_labels import Labels, first_ten, is_missing_label, parse_number
from klr_bench.datasets.compression import lines, open_text
from klr_bench.datasets.dates import date_form
from klr_bench.datasets.workbook import is_parquet
from klr_bench.errors import KlrBenchError, fail, nearest, sanitize

ROWS, FIELDS = 5000, 1_000_000
"""Number of rows, and approximate number of fields, that are kept in memory as text at a time."""
WIDE = 2000
"""Number of columns above which rows are stored as a sparse matrix."""
DELIMITERS = ",;\t| "
SEPARATOR = re.compile(r'"?sep=(\\t|[^\w"\r\n])(\1|\s)*"?\s*', re.IGNORECASE)
"""First line by which Excel names the delimiter; a program may append delimiters to it."""
BRACKETS = (("[", "]"), ("{", "}"), ("(", ")"))
SAMPLE = 20
"""Number of lines from which the delimiter is detected."""
MOST_TITLES = 10
"""Maximum number of lines above a table that are left out."""
QUOTE_ENDS = {"opening": re.compile(r'\s"[^\s"][^"]*\Z'), "closing": re.compile(r'\A[^"]*[^\s"]"\s')}
YEAR = re.compile(r"(1[89]|2[01])\d\d")
SET_LABEL = "data.label= (label_column= of stream)"
SET_FEATURES = "data.n_features= (n_features= of stream)"

TextRows = list[tuple[int, list[str]]]
"""Rows of a file, each with its line number and its fields."""


class OpenQuoteError(csv.Error):
    """Raised if the text ends inside a quoted field, in the row that starts at `line`."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line, self.text = line, b""


@dataclass(frozen=True)
class Layout:
    """The delimiter, the header, the number of columns and the label column of a CSV file."""

    delimiter: str
    header: tuple[str, ...] | None
    n_columns: int
    label: int  # position of the label column, counted from 0
    encoding: str | None = None  # encoding of the file; None: UTF-8
    n_skipped: int = 0  # number of lines before the header or the first row
    n_titles: int = 0  # number of those that are titles or blank

    def describe(self, column: int) -> str:
        """Describe a column for messages, for example "column 2 ('price')"."""
        return f"column {column + 1}" + (f" ({sanitize(repr(self.header[column]))})" if self.header else "")

    def check_names(self, path: Path) -> None:
        """Raise KlrBenchError if the first column has no name, unless it is the label column."""
        if self.header and not self.header[0] and self.label != 0:
            fail(
                f"{path}: the first column has no name and probably contains the row numbers that pandas writes; "
                "remove it with to_csv(index=False)."
            )

    def check_row(self, path: Path, line: int, fields: Sequence[str]) -> None:
        """Raise KlrBenchError if a row has the wrong number of fields."""
        if len(fields) != self.n_columns:
            fail(
                f"{path}, line {line}: expected {self.n_columns} columns as in the first line, got {len(fields)}; "
                "correct or remove the row."
            )


def layout_of(
    path: Path,
    label_column: str | int | None,
    train: Layout | None = None,
    *,
    unnamed: bool = False,
    names: Collection[str] | None = None,
    encoding: str | None = None,
) -> Layout:
    """Detect the delimiter, header and label column from the first lines of a file.

    Raises KlrBenchError if the columns differ from those of `train`.  With `unnamed`, the first column need not have a
    name.  With `names`, the names of columns in the training file, the first line is a header if it has one of them,
    and the file need not have a label column.
    """
    with open_text(path, encoding) as text:
        rows = lines(text, path)
        first_line = next(rows, "")
        declared = SEPARATOR.fullmatch(first_line)
        raw = list(islice(rows if declared else chain([first_line], rows), SAMPLE + MOST_TITLES))
        sample = [*filter(str.strip, raw)][:SAMPLE]
    if not sample:
        fail(f"{path}: no rows.")
    best = max(DELIMITERS, key=lambda candidate: _consistency(sample, candidate))
    if names is not None and sample[0].strip().strip('"') in names:
        best = "\t"  # of a single column
    delimiter = declared[1].replace("\\t", "\t") if declared else best
    headerless = (train is not None and train.header is None) or (names is not None and not names)
    n_titles = _count_titles(raw, delimiter, with_blank=not headerless)
    sample = [*filter(str.strip, raw[n_titles:])][:SAMPLE]
    try:
        first = tuple(next(fields_of(iter(sample), delimiter), (0, [""]))[1])
    except csv.Error as error:
        raise not_delimited(path, error) from error
    if len(first) < 2 and names is None:
        expected = "expected features and a label, separated by ',', ';', '|', tabs or spaces"
        fail(f"{path}: {expected}, got one column, {sanitize(repr(first[0]))}.")
    rows_below = _complete_rows(sample, delimiter)[1:]
    below = [row for row in rows_below if len(row) == len(first)]
    if rows_below and all(len(row) == len(first) + 1 for row in rows_below):
        fail(
            f"{path}: each row has one field more than the first line, as with the row names that R writes; leave them "
            "out with write.csv(row.names = FALSE), or correct the first line."
        )
    is_named = headerless and is_parquet(path)
    is_header = (train and train.header == first) or _is_header(first, below, label_column) or is_parquet(path)
    if names is not None:
        is_header = not set(names).isdisjoint(first)
    if headerless:
        is_header = False
        if not is_named and _are_names(first, below):
            fail(f"{path}: the first line is a header, but the training file has none; expected only rows. Remove it.")
    header = first if is_header else None
    label = place_of(path, -1 if label_column is None else label_column, header, len(first), "data.label")
    n_skipped = (declared is not None) + n_titles + is_named
    layout = Layout(delimiter, header, len(first), label, encoding, n_skipped, n_titles)
    if not unnamed:
        layout.check_names(path)
    if train and (layout.n_columns, layout.label) != (train.n_columns, train.label):
        fail(
            f"{path}: expected {train.n_columns} columns with label column {train.label + 1}, as in the training file, "
            f"got {layout.n_columns} columns with label column {layout.label + 1}."
        )
    if train and train.header and header and header != train.header:
        fail(f"{path}: expected the header of the training file, {first_ten(train.header)}, got {first_ten(header)}.")
    return layout


def _count_titles(lines: Sequence[str], delimiter: str, *, with_blank: bool) -> int:
    """Return the number of lines above the table.

    They are titles, which fill a single field, blank lines among them, and, if `with_blank`, rows of blank
    fields.  A title is not a number; above a table of two columns, it has several words.
    """
    rows = _numbered_rows(lines, delimiter)
    n_fields = Counter(len(fields) for _, fields in rows).most_common(1)[0][0] if rows else 1
    n_titles, has_title = 0, False
    for line, fields in rows:  # a row may have several lines
        filled = [field for field in fields if field]
        is_value = len(filled) > 1 or (filled and parse_number(filled[0]) is not None) or delimiter == " "
        is_name = filled and (n_fields < 2 or (n_fields == 2 and " " not in filled[0]))
        if is_value or is_name or line > MOST_TITLES:
            n_titles = line - 1
            break
        n_titles, has_title = line, has_title or with_blank or bool(filled)
    return n_titles if has_title else 0


def _consistency(sample: list[str], delimiter: str) -> tuple[bool, bool, bool, float, int]:
    """Rate how consistently a delimiter splits the lines of a sample into fields.

    The best delimiter has the largest rating (a tuple).  It splits most rows, and if possible the first, into the same
    number of fields, and tears neither brackets such as ``[1;2]`` nor numbers such as ``1,5`` apart.  Blanks are rated
    last because they also occur in names.
    """
    rows = _complete_rows(sample, delimiter) or [[""]]  # all fields may be blank
    n_fields, n_rows = Counter(map(len, rows)).most_common(1)[0]
    share = n_rows / len(rows) if n_fields > 1 else 0.0
    torn = sum(map(_is_torn, rows)) > len(rows) / 2 or (delimiter == "," and _has_decimal_commas(sample))
    return share > 0.5 and not torn, len(rows[0]) == n_fields, delimiter != " ", share, n_fields


def _is_torn(row: Sequence[str]) -> bool:
    """Return True if brackets or quotation marks open in one field and close in another."""
    surplus = [[field.count(opening) - field.count(closing) for field in row] for opening, closing in BRACKETS]
    ends = [side for field in row if field.count('"') % 2 for side in QUOTE_ENDS if QUOTE_ENDS[side].search(field)]
    return any(any(counts) and not sum(counts) for counts in surplus) or ends[:2] == ["opening", "closing"]


def _has_decimal_commas(sample: list[str]) -> bool:
    """Return True if the commas of a sample are decimal commas.

    Then another delimiter splits all rows into the same number of fields, and the fields with a comma are numbers.
    Those of the first row, which may be a header, do not count unless it is the only row.
    """
    for delimiter in ";\t|":
        rows = _complete_rows(sample, delimiter)
        commas = [field for row in rows[1:] or rows for field in row if "," in field]
        alike = {*map(len, rows)}
        if len(alike) == 1 and alike != {1} and commas and all(parse_amount(field, ",") for field in commas):
            return True
    return False


def _complete_rows(sample: Sequence[str], delimiter: str) -> list[list[str]]:
    return [fields for _, fields in _numbered_rows(sample, delimiter)]


def _numbered_rows(sample: Sequence[str], delimiter: str) -> TextRows:
    rows = []
    with suppress(csv.Error):
        for row in fields_of(iter(sample), delimiter):
            rows.append(row)
    return rows


def place_of(path: Path, column: str | int, header: tuple[str, ...] | None, n: int, setting: str) -> int:
    """Return the 0-based position of a column, given by its name or its position from 1.

    -1 is the last of n columns.  Raises KlrBenchError with the name of the setting.
    """
    text = str(column)
    if header and header.count(text) == 1:
        return header.index(text)
    number = int(text) if re.fullmatch(r"[+-]?\d{1,9}", text, re.ASCII) else None
    if not number or not -n <= number <= n:
        what = f"expected a position from 1 to {n} or from -1 to {-n}."
        if number is None:
            what = "the file has no header, so a position is needed."
        if number is None and header and text in header:
            what = "several columns have this name, so a position is needed."
        elif number is None and header:
            what = f"expected the name of a column.{nearest(text, header if len(header) <= 100 else first_ten(header))}"
        kind = setting.removeprefix("data.")
        fail(f"{path}: there is no {kind} column {sanitize(repr(column))} ({setting}); {what}")
    return number - 1 if number > 0 else number % n


def _are_names(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return True if a line has only texts, and one of them is above a column of numbers."""
    if any(parse_number(field) is not None or is_missing_label(field) for field in first):
        return False
    present = [[field for field in column if not is_missing_label(field)] for column in zip(*below, strict=True)]
    return any(column and None not in map(parse_number, column) for column in present)


def _is_header(first: Sequence[str], below: Sequence[Sequence[str]], label_column: str | int | None) -> bool:
    """Return True if the first line of a CSV file is a header.

    `below` contains the following rows that have the same number of fields.  The first line is a header if a field is
    the name of the label column, if no field is a value (see `_is_value`) and most do not occur in the rows below, or
    if the fields are 0, 1, ....  It is also a header if its numbers may be names, such as years: all are different and
    have up to four digits, and the first label does not occur below.  In addition, either the labels below repeat and
    the name of a feature is a text above numbers; or the names are years above other values, or consecutive numbers,
    and the labels below repeat or are numbers below a text.
    """
    if isinstance(label_column, str) and parse_number(label_column) is None and label_column in first:
        return True
    columns = list(zip(*below, strict=True)) or [()] * len(first)
    names = [field for field, column in zip(first, columns, strict=True) if _is_value(field, column)]
    if not names:
        return 2 * sum(field in column for field, column in zip(first, columns, strict=True)) <= len(first)
    if len(first) > 4 and list(first[:-1]) == [str(column) for column in range(len(first) - 1)]:
        return True
    position = int(label_column) if re.fullmatch(r"-?\d{1,6}", str(label_column)) else -1  # type: ignore[arg-type]
    if not below or not position or not -len(first) <= position <= len(first):
        return False
    position -= position > 0
    label, labels = first[position], columns[position]
    named = len(set(names)) == len(names) and all(re.fullmatch(r"\d{1,4}", name) for name in names)
    if not named or label in labels or is_missing_label(label):
        return False
    texts = [parse_number(name) is None and not is_missing_label(name) for name in first]
    above = [text and None not in map(parse_number, column) for text, column in zip(texts, columns, strict=True)]
    repeat, label_above = len(set(labels)) < len(labels), above.pop(position)
    values = {value for text, column in zip(texts, columns, strict=True) if not text for value in column}
    years = all(map(YEAR.fullmatch, names)) and not any(map(YEAR.fullmatch, values))
    consecutive = all(int(after) == int(before) + 1 for before, after in pairwise(names))
    counting = consecutive and (len(names) > 3 or (label_above and names[:2] == ["0", "1"]))
    return (repeat and any(above)) or ((years or counting) and (repeat or label_above))


def _is_value(field: str, below: Sequence[str]) -> bool:
    """Return True if a field of the first line is a value, not the name of a column.

    It is a number, has the unit of a number below it, or is a date above dates.
    """
    amount = parse_amount(field, ",")
    if parse_number(field) is not None or (amount is not None and not amount.unit):
        return True
    if amount is not None:
        return any(other.unit == amount.unit for value in below if (other := parse_amount(value, ",")))
    present = [value for value in below if not is_missing_label(value)]
    return bool(present) and None not in map(date_form, [field, *present])


def fields_of(lines: Iterator[str], delimiter: str, first: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Split lines into rows; yield the line number and the fields of each non-blank row.

    `first` is the number of the first line.  Raises csv.Error, and OpenQuoteError if the lines end inside a quoted
    field.
    """
    at_end, begin, last = False, first, ""

    def tracked_lines() -> Iterator[str]:
        nonlocal at_end, last
        for line in lines:
            last = line
            yield line.strip() + "\n" if delimiter == " " else line
        at_end = True

    reader = csv.reader(tracked_lines(), delimiter=delimiter, skipinitialspace=True)
    try:
        for fields in reader:
            if at_end:  # a quoted field in the last row is not closed
                break
            stripped = [field.strip() for field in fields]
            if any(stripped) or len(stripped) > 1 or (stripped and '"' in last):
                yield begin, stripped
            begin = first + reader.line_num
        else:
            return
    except csv.Error as error:
        if first - 1 + reader.line_num <= begin:
            reason = f"a field has more than {csv.field_size_limit():,} characters" if "limit" in str(error) else error
            message = f"line {begin}: {reason}"
            raise csv.Error(message) from error
    message = f"the quote opened on line {begin} is never closed"
    if not at_end:
        raise csv.Error(message)
    raise OpenQuoteError(message, begin)


def text_rows(path: Path, layout: Layout) -> Iterator[TextRows]:
    """Yield the rows of a file in batches, without the header.

    Raises KlrBenchError that names the file and the line.
    """
    with open_text(path, layout.encoding) as text:
        content = islice(lines(text, path), layout.n_skipped, None)
        fields_in_lines = fields_of(content, layout.delimiter, 1 + layout.n_skipped)
        rows = islice(fields_in_lines, 1 if layout.header else 0, None)
        try:
            while part := list(islice(rows, max(1, min(ROWS, FIELDS // layout.n_columns)))):
                for line, fields in part:
                    layout.check_row(path, line, fields)
                yield part
        except csv.Error as error:
            raise not_delimited(path, error) from error


def not_delimited(path: Path, error: csv.Error) -> KlrBenchError:
    """Return a KlrBenchError for text that is not valid CSV."""
    return KlrBenchError(f"{path}: not delimited text ({error}). Correct or remove the line.")


def no_labeled_row(path: Path, layout: Layout, labels: Labels) -> KlrBenchError:
    """Return a KlrBenchError for a file in which no row has a label."""
    where = f"no row has a label in {layout.describe(layout.label)}; set data.label=NAME to use another column."
    return KlrBenchError(f"{path}: {where if labels.dropped else 'no rows.'}")


def check_width(path: Path, width: int, n_features: int | None) -> None:
    """Raise KlrBenchError if the number of features of a file differs from `n_features`."""
    if n_features not in {None, width}:
        fail(
            f"{path}: expected n_features={n_features} feature columns, got {width}; omit {SET_FEATURES}, "
            "or correct the file."
        )
