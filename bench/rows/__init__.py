# SPDX-License-Identifier: Apache-2.0
"""The table, row by row, in the order in which scripts/bench runs it."""
from rows import (cli, companions, copies, events, execs, fifty, life, many, memory, ping, verification, recovery, start,
                  stop, store)

ROWS = (ping.ROW, memory.AT_REST, store.ROW, start.ROW, life.ROW, copies.ROW, companions.SERVICE,
        companions.COMPANIONS, verification.ROW, stop.ROW, fifty.ROW,
        execs.EXEC, execs.CPU, execs.CROWD, execs.OUTPUT, execs.READERS, execs.EFFORT, cli.ROW, events.LATENCY,
        events.DELIVERIES, events.STALLED, events.IDLE, memory.IN_USE, recovery.ROW, many.ASLEEP, many.CROWDED)
