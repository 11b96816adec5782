# SPDX-License-Identifier: Apache-2.0
"""The table, row by row, in the order in which scripts/bench runs it."""
from rows import (cli, companions, copies, events, execs, fifty, life, many, memory, ping, verification, recovery, start,
                  stop, store, terminals)

ROWS = (ping.ROW, memory.AT_REST, store.ROW, start.ROW, life.ROW, copies.ROW, copies.CP, companions.SERVICE,
        companions.COMPANIONS, verification.ROW, stop.ROW, fifty.ROW,
        execs.EXEC, execs.CPU, execs.CROWD, execs.OUTPUT, execs.READERS, execs.EFFORT, terminals.KEYSTROKE,
        terminals.IDLE, cli.ROW, events.LATENCY,
        events.DELIVERIES, events.STALLED, events.IDLE, memory.IN_USE, recovery.ROW, many.ASLEEP, many.CROWDED)
