# SPDX-License-Identifier: Apache-2.0
"""Creates the root file systems that tests need, before the first test: `python3 -m support.make_roots [--long]`."""

import sys
from concurrent.futures import ThreadPoolExecutor

from support.engine import DOCKER_KINDS, EVERYDAY_KIND, KINDS, OLDEST_KIND
from support.engine_root import DebianArchive, DebianHost, cached, say_on_stderr
from support.image_builder import NodeArchive
from support.run_directory import RunDirectory
from support.service_images import SERVERS


def main() -> None:
    is_long = "--long" in sys.argv[1:]
    kinds = DOCKER_KINDS if is_long else (OLDEST_KIND, EVERYDAY_KIND)
    trees = [tree for name in kinds for tree in (KINDS[name].root, KINDS[name].programs) if tree]
    mark = RunDirectory()
    try:
        with ThreadPoolExecutor() as pool:
            archives = [DebianArchive(), DebianHost(), SERVERS, *([NodeArchive()] if is_long else [])]
            wanted = dict.fromkeys([*trees, *archives])
            made = [pool.submit(cached, tree, say_on_stderr) for tree in wanted]
        for tree in made:
            tree.result()
    finally:
        mark.remove()


if __name__ == "__main__":
    main()
