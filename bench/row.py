# SPDX-License-Identifier: Apache-2.0
"""A row of the benchmark table: how it is measured, which ratios must hold (gates) and which numbers we
work towards (aims)."""
import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ratios import Ratio, Round, change, median_ratio, quantile, values_of

ENGINES = ("20.10", "28")


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """One of the two."""
    at_most: float | None = None
    at_least: float | None = None

    def holds(self, value: float) -> bool:
        return value <= self.at_most if self.at_most is not None else value >= self.at_least

    def text(self) -> str:
        return f"at most {number(self.at_most)}" if self.at_most is not None \
            else f"at least {number(self.at_least)}"


class Outcome(enum.Enum):
    HOLDS = "holds"
    UNDECIDED = "undecided, the limit lies within the interval"
    FAILS = "FAILS"


@dataclass(frozen=True)
class Gate(Bound):
    """A limit on the ratio of two arms; `scripts/bench --check` fails on gates and on nothing else.

    A gate fails when the whole 95 % interval is beyond the limit. Noise widens the interval, so it alone
    does not fail a gate; a slowdown moves the whole interval and does. What the interval of one run does
    not show is how much the median differs from run to run: the distance from `today` to the limit is
    for that. Without `today` the limit is a guess."""
    metric: str
    arm: str
    baseline: str
    # Measured on 2 quiet cores when the gate was set; None if that is still to be done.
    today: float | None = field(default=None, kw_only=True)
    engine: str | None = field(default=None, kw_only=True)  # on this engine only

    def judge(self, ratio: Ratio) -> Outcome:
        good_end, bad_end = (ratio.low, ratio.high) if self.at_most is not None \
            else (ratio.high, ratio.low)
        if not self.holds(good_end):
            return Outcome.FAILS
        return Outcome.HOLDS if self.holds(bad_end) else Outcome.UNDECIDED

    def subject(self) -> str:
        return f"{self.metric}, {self.arm} / {self.baseline}"

    def origin(self) -> str:
        return "not measured when it was set" if self.today is None else f"{number(self.today)} when it was set"


@dataclass(frozen=True)
class Aim(Bound):
    """A number that we work towards, on 2 cores; reported, never failed on. With a baseline it is the
    median of the ratios."""
    metric: str
    arm: str
    baseline: str | None = None
    quantile: float = 0.5

    def value(self, rounds: list[Round]) -> float:
        if self.baseline is not None:
            return median_ratio(rounds, self.metric, self.arm, self.baseline).median
        return quantile(values_of(rounds, self.arm, self.metric), self.quantile)

    def subject(self) -> str:
        if self.baseline is not None:
            return f"{self.metric}, {self.arm} / {self.baseline}"
        return f"{self.metric} p{self.quantile * 100:g}, {self.arm}"


@dataclass(frozen=True)
class Run:
    """One measurement of a row."""
    build: Path
    rounds: int
    engine: str | None  # for rows that need one


@dataclass
class Measured:
    rounds: list[Round]
    notes: list[str] = field(default_factory=list)  # CPU time and the like, one line each


@dataclass(frozen=True, kw_only=True)
class Row:
    name: str
    title: str
    rounds: int
    check_rounds: int = 0  # for --check, which leaves out rows without gates
    # Rough, for the estimate that is printed first: 2 quiet cores.
    setup_s: float
    round_s: float
    measure: Callable[[Run], Measured]
    # The engines that it is measured on unless others are asked for: both if the engine does a part of
    # the work, one if it is only there, none if the row has no sandboxes.
    engines: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    aims: tuple[Aim, ...] = ()

    def gates_on(self, engine: str | None) -> list[Gate]:
        return [gate for gate in self.gates if gate.engine in (None, engine)]

    def seconds(self, rounds: int) -> float:
        return self.setup_s + rounds * self.round_s


@dataclass
class Verdict:
    row: Row
    engine: str | None
    measured: Measured
    gates: list[tuple[Gate, Ratio, Outcome]]

    @property
    def name(self) -> str:
        return self.row.name if self.engine is None else f"{self.row.name} on Docker {self.engine}"

    def has(self, outcome: Outcome) -> bool:
        return any(found is outcome for _, _, found in self.gates)

    def as_json(self) -> dict:
        return {
            "benchmark": self.row.name,
            "engine": self.engine,
            "title": self.row.title,
            "rounds": len(self.measured.rounds),
            "arms": {arm: {metric: {"p50": p50, "p99": p99} for metric, p50, p99 in metrics}
                     for arm, metrics in self.arms().items()},
            "gates": [{"metric": gate.metric, "arm": gate.arm, "baseline": gate.baseline,
                       "median": ratio.median, "low": ratio.low, "high": ratio.high,
                       "today": gate.today, "limit": gate.text(), "outcome": outcome.name.lower()}
                      for gate, ratio, outcome in self.gates],
            "aims": [{"metric": aim.metric, "arm": aim.arm, "baseline": aim.baseline,
                      "quantile": aim.quantile, "value": value, "aim": aim.text(),
                      "reached": aim.holds(value)} for aim, value in self.aims()],
            "notes": self.measured.notes,
        }

    def arms(self) -> dict[str, list[tuple[str, float, float]]]:
        first = self.measured.rounds[0]
        return {arm: [(metric, quantile(values, 0.5), quantile(values, 0.99))
                      for metric in first[arm]
                      if (values := values_of(self.measured.rounds, arm, metric))]
                for arm in sorted(first)}

    def aims(self) -> list[tuple[Aim, float]]:
        return [(aim, aim.value(self.measured.rounds)) for aim in self.row.aims]


def judge(row: Row, engine: str | None, measured: Measured) -> Verdict:
    gates = []
    for gate in row.gates_on(engine):
        ratio = median_ratio(measured.rounds, gate.metric, gate.arm, gate.baseline)
        gates.append((gate, ratio, gate.judge(ratio)))
    return Verdict(row, engine, measured, gates)


@dataclass
class Comparison:
    """Two builds in one run, by the ratios that the row has gates on."""
    row: Row
    engine: str | None
    changes: list[tuple[Gate, Ratio]]

    # A larger regression has to be intended, and then the gates are set again.
    WORSE = 0.05

    def is_worse(self) -> bool:
        """Noise alone does not make it worse: the whole interval has to be."""
        return any(found.low > 1 + self.WORSE if gate.at_most is not None else found.high < 1 - self.WORSE
                   for gate, found in self.changes)

    def as_json(self) -> dict:
        return {"changes": [{"metric": gate.metric, "arm": gate.arm, "baseline": gate.baseline,
                             "median": found.median, "low": found.low, "high": found.high}
                            for gate, found in self.changes]}

    def text(self) -> str:
        return "\n".join(f"  change: {gate.subject()}: {found.median:.3g} [{found.low:.3g}, {found.high:.3g}] times "
                         f"the other build; {'less' if gate.at_most is not None else 'more'} is better"
                         for gate, found in self.changes)


def compare(row: Row, engine: str | None, new: Measured, old: Measured) -> Comparison:
    return Comparison(row, engine, [(gate, change(new.rounds, old.rounds, gate.metric, gate.arm, gate.baseline))
                                    for gate in row.gates_on(engine)])


def describe(verdict: Verdict) -> str:
    lines = [f"{verdict.name}: {verdict.row.title} ({len(verdict.measured.rounds)} rounds)"]
    for arm, metrics in verdict.arms().items():
        for metric, p50, p99 in metrics:
            lines.append(f"  {arm:<34} {metric:<18} p50 {number(p50):>10}  p99 {number(p99):>10}")
    for gate, ratio, outcome in verdict.gates:
        lines.append(f"  gate: {gate.subject()}: {ratio.median:.3g} [{ratio.low:.3g}, {ratio.high:.3g}], "
                     f"{gate.text()} ({gate.origin()}): {outcome.value}")
    for aim, value in verdict.aims():
        lines.append(f"  aim: {aim.subject()}: {number(value)}, {aim.text()}: "
                     f"{'reached' if aim.holds(value) else 'not reached'}")
    lines += [f"  {note}" for note in verdict.measured.notes]
    return "\n".join(lines)
