# SPDX-License-Identifier: Apache-2.0
"""Images with real servers for services of a sandbox: PostgreSQL and Redis of Debian, with their clients.

Both come from one tree, which is made once per machine and imported once per engine."""

from support.engine_api import EngineApi
from support.engine_root import DebianArchive, Say, cached, say_on_stderr
from support.images import Image, build_image, has_image, make_image

POSTGRES = "test-postgres:15"
REDIS = "test-redis:7"
CLIENT = "test-servers:1"  # the tree alone: psql and redis-cli
POSTGRES_PROBE = ("CMD", "pg_isready", "-q", "-U", "postgres")
REDIS_PROBE = ("CMD-SHELL", "redis-cli ping | grep -q PONG")

_BIN = "/usr/lib/postgresql/15/bin"
# No cluster is made when the package is installed.
_NO_CLUSTER = (
    'mkdir -p "$1/etc/postgresql-common" && '
    'echo "create_main_cluster = false" > "$1/etc/postgresql-common/createcluster.conf"'
)
SERVERS = DebianArchive(
    packages="postgresql-15,redis-server",
    options=(
        f"--essential-hook={_NO_CLUSTER}",
        "--dpkgopt=force-confold",
        # Of PostgreSQL's compiler for queries, which no test needs, and of tools for development.
        *(f"--dpkgopt=path-exclude={path}" for path in (
            "/usr/lib/*/libLLVM*", "/usr/lib/llvm-14/*", "/usr/lib/postgresql/15/lib/bitcode/*",
            "/usr/lib/*/libz3*", "/usr/share/i18n/*")),
        # What only the installation needs; and clients without a wrapper in Perl, which a login shell finds.
        '--customize-hook=rm -rf "$1"/usr/share/perl "$1"/usr/lib/*/perl "$1"/usr/share/postgresql-common',
        f'--customize-hook=ln -sf {_BIN}/psql {_BIN}/pg_isready "$1"/usr/bin/',
    ),
)

# As the well-known image does: arguments that are not the server are executed; the server begins as root,
# prepares its directory, and serves as its own user. A cluster that was not completed before the container
# was killed is made again.
_POSTGRES_ENTRY = f"""#!/bin/sh
set -eu
[ "$1" = postgres ] || exec "$@"
data=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
  mkdir -p /run/postgresql
  chown postgres:postgres /run/postgresql /var/lib/postgresql
  exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$0" "$@"
fi
if [ ! -d "$data" ]; then
  rm -rf "$data.new"
  {_BIN}/initdb -D "$data.new" -U postgres -A trust --no-sync --no-locale -E UTF8
  echo 'host all all all trust' >> "$data.new/pg_hba.conf"
  mv "$data.new" "$data"
fi
exec "$@" -D "$data" -c listen_addresses='*' -c fsync=off -c shared_buffers=8MB
"""


def make_service_images(api: EngineApi, say: Say = say_on_stderr) -> None:
    """POSTGRES, REDIS and CLIENT; once per engine, because they are large."""
    if not has_image(api, CLIENT):
        archive = cached(SERVERS, say) / "tree.tar"
        path = f"{_BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        make_image(api, CLIENT, Image(archive=archive, environment={"PATH": path}))
    if not has_image(api, POSTGRES):
        lines = ["COPY entry /entry", 'ENTRYPOINT ["/entry"]', 'CMD ["postgres"]', "EXPOSE 5432"]
        build_image(api, POSTGRES, CLIENT, lines, {"entry": _POSTGRES_ENTRY.encode()})
    if not has_image(api, REDIS):
        arguments = '"--save", "", "--protected-mode", "no", "--bind", "0.0.0.0"'
        lines = ["USER redis", "WORKDIR /var/lib/redis", f'CMD ["redis-server", {arguments}]']
        build_image(api, REDIS, CLIENT, lines)

