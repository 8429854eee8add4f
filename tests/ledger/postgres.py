"""A real PostgreSQL server of the tests' own: in a temporary folder, on a socket, gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import create_engine, text

QUICK = "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=200"


def binaries() -> Path:
    """The directory of initdb and pg_ctl."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        raise FileNotFoundError("PostgreSQL is not installed (Debian: apt-get install postgresql); see tests/README.md")
    return found[-1].parent if found else Path(on_path or "").parent


class Server:
    """A running server; it refuses to run as root, so root runs it as the user postgres."""

    def __init__(self, folder: Path) -> None:
        self._bin = binaries()
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self.folder = folder
        if self._as:
            shutil.chown(folder, "postgres")
        self._run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")

    def start(self) -> None:
        options = f"-k {self.folder} {QUICK}"
        self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", "data", "-m", mode, "-w", "stop")

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    def new_database(self, name: str, template: str = "migrated") -> str:
        """Make a database, a copy of the migrated one unless said; returns its address."""
        admin = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
        admin.dispose()
        return self.url(name)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._bin / program), *arguments]
        # Output to a file: the server would hold a pipe open for as long as it lives.
        with (self.folder / f"{program}.out").open("wb") as out:
            done = subprocess.run(command, cwd=self.folder, stdout=out, stderr=out, timeout=120, check=False)
        if done.returncode:
            raise RuntimeError(f"{program}: {(self.folder / f'{program}.out').read_text()}")


@contextmanager
def running_server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="evenhand-pg-"))
    try:
        server = Server(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder)
