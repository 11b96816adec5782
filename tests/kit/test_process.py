# SPDX-License-Identifier: Apache-2.0
"""Waiting for a program's output: found, ended first, timed out."""

import subprocess

import pytest

from support.process import LoggedProcess, base_environment, kill_and_wait, run
from support.run_directory import check_socket_path


@pytest.fixture
def shell():
    started = []

    def start(script: str, **options) -> LoggedProcess:
        argv = ["sh", "-c", script]
        started.append(LoggedProcess("shell", argv, base_environment(), **options))
        return started[-1]

    yield start
    for process in started:
        if process.returncode() is None:
            process.kill()


def test_a_line_is_waited_for(shell):
    process = shell("echo one; echo two; exec sleep 600")
    assert process.wait_for_line(lambda line: line == "two", "two", timeout=10) == "two"
    assert process.wait_for_line(lambda line: line == "one", "one", timeout=10) == "one"


def test_a_program_is_asked_and_only_what_it_says_afterwards_counts(shell):
    process = shell("echo ok; while read -r line; do echo ok $line; done", stdin=subprocess.PIPE)
    process.wait_for_line("ok".__eq__, "the first words", timeout=10)
    process.write_line("again")
    answer = process.wait_for_line(lambda line: line.startswith("ok"), "an answer", 10, after=1)
    assert answer == "ok again"
    process.close_input()
    assert process.wait() == 0


def test_a_program_that_ends_first_is_reported_with_its_words(shell):
    process = shell("echo 'cannot go on'; exit 3")
    with pytest.raises(
        RuntimeError, match="(?s)waited for a miracle: it ended first.*cannot go on"
    ):
        process.wait_for_line(lambda line: line == "miracle", "a miracle", timeout=10)
    assert process.wait() == 3


def test_a_line_that_does_not_come_is_reported(shell):
    process = shell("echo here; exec sleep 600")
    with pytest.raises(RuntimeError, match="not within 0.3 s"):
        process.wait_for_line(lambda line: line == "never", "never", timeout=0.3)


def test_a_childs_pipe_is_not_waited_for_and_nothing_of_the_program_is_missed(shell):
    process = shell("sleep 600 & echo $!; seq 100000; echo -n last; echo ' words'")
    try:
        assert process.wait() == 0
        assert process.lines()[1:] == [*map(str, range(1, 100001)), "last words"]
    finally:
        kill_and_wait([int(process.lines()[0])])


def test_a_last_line_without_its_end_counts(shell):
    process = shell("echo one; echo -n two")
    assert process.wait() == 0
    assert process.lines() == ["one", "two"]


def test_a_program_that_does_not_stop_is_reported(shell):
    process = shell("trap '' TERM; echo up; exec sleep 600")
    process.wait_for_line("up".__eq__, "up", timeout=10)
    with pytest.raises(RuntimeError, match="still runs after 0.3 s"):
        process.stop(timeout=0.3)


def test_a_command_that_fails_is_reported_with_its_words():
    with pytest.raises(RuntimeError, match="ls /no/such: exit 2: .*No such file"):
        run("ls", "/no/such")


def test_a_socket_path_that_is_too_long_is_refused(directory):
    check_socket_path(directory / "s")
    with pytest.raises(ValueError, match="more than the 107"):
        check_socket_path(directory / ("x" * 100))
