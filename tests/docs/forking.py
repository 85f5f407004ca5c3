"""The commands `mizzen` and `python` without their imports: a process that has made them forks.

A hundred commands spend most of their time on importing the same modules. That they are imported
is all that differs: each command is a process of its own, with the words, folder, environment and
streams that the shell gives it. What stands in the shell's path hands those over, and ends as the
command does.

This module is the forking process too: ``python forking.py SOCKET MODULE...``. It ends when its
standard input does, which is whoever started it.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PLAIN = (
    "mizzen.cli.main",
    "mizzen.compiler.compile",
    "mizzen.analysis.checking.networks",
    "mizzen.compiler.ethos_u.proof",
    "mizzen.artifact.loading",
    "mizzen.report.cost",
    "mizzen.emulate",
)
"""What most commands import. They import the rest themselves."""
PYTORCH = (*PLAIN, "torch.export", "torchao.quantization.pt2e.quantize_pt2e", "mizzen.torch")
"""What those with PyTorch programs import."""

CLIENT = """\
#!{python} -SE
import marshal, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({path!r})
request = marshal.dumps((sys.argv, os.getcwd(), dict(os.environ)))
socket.send_fds(connection, [len(request).to_bytes(4, "little")], [0, 1, 2])
connection.sendall(request)
answer = connection.recv(1)
sys.exit(answer[0] if answer else 125)
"""


class Forking:
    """A process that has imported modules, and `folder`, which has the commands for a path."""

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        self.folder = folder
        path = folder / "socket"
        for name in ("mizzen", "python"):
            command = folder / name
            command.write_text(CLIENT.format(python=sys.executable, path=str(path)))
            command.chmod(0o755)
        words = [sys.executable, __file__, str(path), *modules]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def serve(path: str) -> None:
    """Fork for each command that is asked for; return in its process."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                os._exit(0)
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _attend(connection)


def _attend(connection: socket.socket) -> None:
    """Fork once more, for the command, and tell how it ended."""
    size, streams, _, _ = socket.recv_fds(connection, 4, 3)
    request = connection.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL)
    child = os.fork()
    if child == 0:
        connection.close()
        _become(request, streams)
        return
    for stream in streams:
        os.close(stream)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def _become(request: bytes, streams: Sequence[int]) -> None:
    """Take the words, folder, environment and streams of the command."""
    words, folder, environment = marshal.loads(request)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words


def command() -> int:
    """Do what the words say: `mizzen ...`, `python FILE ...`, `python -c TEXT` or `python -`."""
    if Path(sys.argv[0]).name == "mizzen":
        from mizzen.cli.main import main

        return main()
    match sys.argv[1:]:
        case ["-c", text]:
            _execute(text)
        case ["-"]:
            _execute(sys.stdin.read())
        case [path, *_] if not path.startswith("-"):
            sys.argv = sys.argv[1:]
            sys.path[0] = str(Path(path).resolve().parent)
            runpy.run_path(path, run_name="__main__")
        case words:
            os.execv(sys.executable, [sys.executable, *words])
    return 0


def _execute(text: str) -> None:
    sys.path[0] = ""
    exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    for module in sys.argv[2:]:
        importlib.import_module(module)
    gc.freeze()
    serve(sys.argv[1])
    sys.exit(command())
