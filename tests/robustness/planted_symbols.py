# SPDX-License-Identifier: Apache-2.0
"""Finds the linker's names of the functions that planted_bugs.cpp replaces, which change with their parameters.

    planted_symbols.py HEADER LINK_OPTIONS ARCHIVE...

HEADER gets a macro for each, LINK_OPTIONS an option --wrap."""

import re
import subprocess
import sys
from pathlib import Path

FUNCTIONS = {
    "ADVANCE": r"agbox::advance\(",
    "DECIDE": r"agbox::decide\(",
    "TO_MESSAGE": r"agbox::to_message\(.*LifecycleStatus",
    "TIME_TO_LIVE": r"agbox::time_to_live\(",
    "JUDGE_CONTAINER": r"agbox::judge_container\(",
    "COMPANION_PLAN": r"agbox::companion_plan\(",
    "APPEND": r"agbox::Store::append\(",
    "LOAD": r"agbox::Store::load\(\)",
    "GET": r"agbox::Directory::get\(",
    "LIST": r"agbox::Directory::list\(",
    # Not the coroutine of the same name.
    "CREATE": r"agbox::Directory::create\(.*std::function<",
    "REMOVE_MATCHING": r"agbox::Directory::remove_matching\(.*std::function<",
    "FIND_EXEC_OUTPUT": r"agbox::Directory::find_exec_output\(.*std::function<.*std::function<",
    "NEXT": r"agbox::EventSubscription::next\(\)",
    "NEXT_OF_ALL": r"agbox::AllEventsSubscription::next\(\)",
    "PARSE_EVENT_CURSOR": r"agbox::parse_event_cursor\(",
}


def defined_in(archives: list[str]) -> dict[str, str]:
    """The functions' linker names by their names in C++."""
    listed = [
        subprocess.run(
            ["nm", "--defined-only", "--extern-only", "--format=just-symbols", *demangled, *archives],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.splitlines()
        for demangled in ([], ["--demangle"])
    ]
    return dict(zip(listed[1], listed[0], strict=True))


def main(header: str, link_options: str, *archives: str) -> None:
    names = defined_in(list(archives))
    found = {}
    for macro, pattern in FUNCTIONS.items():
        meant = {linked for name, linked in names.items() if re.match(pattern, name)}
        if len(meant) != 1:
            sys.exit(f"planted_symbols.py: {pattern} is {len(meant)} functions: {sorted(meant)}")
        found[macro] = meant.pop()
    macros = [f'#define AGBOX_{macro} "{linked}"\n' for macro, linked in found.items()]
    Path(header).write_text("#pragma once\n" + "".join(macros), encoding="utf-8")
    options = [f"-Wl,--wrap={linked}\n" for linked in found.values()]
    Path(link_options).write_text("".join(options), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
