"""Records as columns, and what is measured of them."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from undershoot.arrays import AnyArray, Bools

if TYPE_CHECKING:
    import pyarrow


class Columns:
    """Records as arrays, with rows chosen by the values of columns."""

    def __init__(self, columns: dict[str, AnyArray]) -> None:
        self._columns = columns

    @classmethod
    def from_table(cls, table: "pyarrow.Table") -> "Columns":
        """Numbers as float64, nan where there is none; text as it is, each value held once."""
        import pyarrow

        columns = {}
        for name in table.column_names:
            column = table.column(name)
            if pyarrow.types.is_string(column.type):
                coded = column.combine_chunks().dictionary_encode()
                words = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
                columns[name] = words[coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]
            elif pyarrow.types.is_list(column.type):
                columns[name] = np.array([*column.to_pylist(), None], dtype=object)[:-1]
            else:
                columns[name] = column.to_numpy().astype(np.float64)
        return cls(columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def where(self, **values: Any) -> "Columns":
        """Only rows with these values; nan is one value."""
        keep: Bools = np.ones(len(self), dtype=np.bool_)
        for name, value in values.items():
            column = self._columns.get(name)
            if column is None:
                keep[:] = False
            elif isinstance(value, float) and math.isnan(value):
                keep &= np.isnan(column.astype(np.float64))
            else:
                keep &= column == value
        return Columns({name: column[keep] for name, column in self._columns.items()})

    def among(self, name: str, values: Iterable[str]) -> "Columns":
        """Only rows in which a column has one of these values."""
        column = self._columns.get(name)
        if column is None:
            return Columns({})
        keep = np.isin(column.astype(str), list(values))
        return Columns({key: kept[keep] for key, kept in self._columns.items()})

    def of(self, name: str) -> AnyArray:
        """float64[N]; nan where there is no value."""
        return self._columns.get(name, np.zeros(0))

    def text(self, name: str) -> list[Any]:
        """The values as they are."""
        return list(self._columns.get(name, ()))

    def split(self, name: str) -> list["Columns"]:
        """The rows of every value of a column, in the order in which they first appear."""
        seen = {None if isinstance(value, float) and math.isnan(value) else value: value for value in self.text(name)}
        return [self.where(**{name: value}) for value in seen.values()]


def admissible(part: Columns) -> float:
    """The percentage of start states on which h is at most the true cost."""
    return float(100 * np.mean(part.of("h") <= part.of("true_cost")))


def solved(part: Columns) -> float:
    """In percent."""
    return float(100 * np.mean(~np.isnan(part.of("cost"))))


def expanded(part: Columns) -> float:
    """The mean over all instances."""
    return _mean(part.of("expanded"))


def expanded_solved_only(part: Columns) -> float:
    """The paper's mean, over what this heuristic solved."""
    return _mean(part.of("expanded")[~np.isnan(part.of("cost"))])


def gap(part: Columns) -> float:
    """How much dearer solutions are than the true cost, in percent, over what was solved."""
    cost, true = part.of("cost"), part.of("true_cost")
    known = ~np.isnan(cost) & (true > 0)
    return _mean(100 * (cost[known] - true[known]) / true[known])


def admissible_everywhere(over: Columns) -> str:
    """Of all states, in percent."""
    return shares((100 * (1 - over.of("overestimates") / over.of("states"))).tolist(), 4)


def _mean(values: AnyArray) -> float:
    return float(values.mean()) if len(values) else math.nan


def spread(parts: Iterable[float], digits: int = 2, unit: str = "") -> str:
    """Mean and standard deviation over seeds; one number if there is one. With digits enough to tell the mean from 0."""
    known = [part for part in parts if not math.isnan(part)]
    if not known:
        return "–"
    while any(known) and digits < 9 and round(abs(float(np.mean(known))), digits) == 0:
        digits += 1
    mean = f"{np.mean(known):,.{digits}f}"
    if len(known) == 1 or max(known) == min(known):
        return mean + unit
    return f"{mean} ± {np.std(known, ddof=1):,.{digits}f}{unit}"


def share(percent: float, digits: int) -> str:
    """A percentage, rounded down: 100 stands for all of them."""
    whole = math.floor(round(percent * 10**digits, 6))  # 4.35 * 100 is a little less than 435
    return f"{whole / 10**digits:.{digits}f}"


def shares(parts: Iterable[float], digits: int) -> str:
    """`spread` for percentages, of which only those of all are 100."""
    known = [part for part in parts if not math.isnan(part)]
    if not known:
        return "–"
    mean = share(float(np.mean(known)), digits)
    if len(known) == 1 or max(known) == min(known):
        return f"{mean} %"
    return f"{mean} ± {np.std(known, ddof=1):.{digits}f} %"
