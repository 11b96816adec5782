# SPDX-License-Identifier: Apache-2.0
"""A row of the benchmark table: how it is measured, and what is expected of it."""
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ratios import Ratio, Round, median_ratio, quantile, values_of


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


@dataclass(frozen=True, kw_only=True)
class Bound:
    at_most: float | None = None
    at_least: float | None = None

    def holds(self, value: float) -> bool:
        return (self.at_most is None or value <= self.at_most) and \
            (self.at_least is None or value >= self.at_least)

    def text(self) -> str:
        return f"at most {number(self.at_most)}" if self.at_most is not None \
            else f"at least {number(self.at_least)}"


@dataclass(frozen=True)
class Goal(Bound):
    """A bound on ours/beside. Only such ratios can fail `scripts/bench --check`."""
    metric: str
    ours: str
    beside: str


@dataclass(frozen=True)
class Target(Bound):
    """An absolute number that we aim for on 2 cores; reported, never failed on."""
    metric: str
    arm: str
    quantile: float


@dataclass
class Measured:
    rounds: list[Round]
    notes: list[str] = field(default_factory=list)  # CPU time and the like, one line each


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    default_rounds: int
    measure: Callable[[Path, int], Measured]  # (folder of the build, rounds)
    goals: tuple[Goal, ...]
    targets: tuple[Target, ...] = ()


@dataclass
class Verdict:
    row: Row
    measured: Measured
    ratios: list[tuple[Goal, Ratio, bool]]

    @property
    def is_met(self) -> bool:
        return all(met for _, _, met in self.ratios)

    def as_json(self) -> dict:
        return {
            "benchmark": self.row.name,
            "title": self.row.title,
            "rounds": len(self.measured.rounds),
            "arms": {arm: {metric: {"p50": p50, "p99": p99} for metric, p50, p99 in metrics}
                     for arm, metrics in self.arms().items()},
            "ratios": [{"metric": goal.metric, "ours": goal.ours, "beside": goal.beside,
                        "median": ratio.median, "low": ratio.low, "high": ratio.high,
                        "goal": goal.text(), "met": met} for goal, ratio, met in self.ratios],
            "targets": [{"metric": target.metric, "arm": target.arm, "quantile": target.quantile,
                         "value": value, "at_most": target.at_most, "at_least": target.at_least}
                        for target, value in self.target_values()],
            "notes": self.measured.notes,
        }

    def arms(self) -> dict[str, list[tuple[str, float, float]]]:
        first = self.measured.rounds[0]
        return {arm: [(metric, quantile(values, 0.5), quantile(values, 0.99))
                      for metric in first[arm]
                      if (values := values_of(self.measured.rounds, arm, metric))]
                for arm in sorted(first)}

    def target_values(self) -> list[tuple[Target, float]]:
        return [(target, quantile(values_of(self.measured.rounds, target.arm, target.metric),
                                  target.quantile)) for target in self.row.targets]


def judge(row: Row, measured: Measured) -> Verdict:
    ratios = []
    for goal in row.goals:
        ratio = median_ratio(measured.rounds, goal.metric, goal.ours, goal.beside)
        ratios.append((goal, ratio, goal.holds(ratio.median)))
    return Verdict(row, measured, ratios)


def describe(verdict: Verdict) -> str:
    lines = [f"{verdict.row.name}: {verdict.row.title} ({len(verdict.measured.rounds)} rounds)"]
    for arm, metrics in verdict.arms().items():
        for metric, p50, p99 in metrics:
            lines.append(f"  {arm:<34} {metric:<18} p50 {number(p50):>10}  p99 {number(p99):>10}")
    for goal, ratio, met in verdict.ratios:
        lines.append(f"  ratio of {goal.metric}, {goal.ours} / {goal.beside}: {ratio.median:.3g} "
                     f"[{ratio.low:.3g}, {ratio.high:.3g}], goal {goal.text()}: "
                     f"{'met' if met else 'MISSED'}")
    for target, value in verdict.target_values():
        lines.append(f"  aim for {target.arm}, {target.metric} p{target.quantile * 100:g}: "
                     f"{number(value)}, {target.text()} on 2 cores: "
                     f"{'reached' if target.holds(value) else 'not reached here'}")
    lines += [f"  {note}" for note in verdict.measured.notes]
    return "\n".join(lines)
