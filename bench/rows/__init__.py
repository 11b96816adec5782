# SPDX-License-Identifier: Apache-2.0
"""The table, row by row, in the order in which scripts/bench runs it."""
from rows import memory, ping, start, store

ROWS = (ping.ROW, memory.ROW, store.ROW, start.ROW)
