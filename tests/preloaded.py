"""An interpreter that has frameworks loaded: programs begin in it as with ``python``, without seconds of imports each.

`python` starts a server, which imports what is asked for, and returns an executable. That takes ``[-u] FILE``, ``-m
MODULE`` or ``-c CODE`` with arguments; the server forks a process, which has the caller's streams, directory and
environment. It imports all else itself: nothing of Stoker is loaded before. Programs that it starts with
``sys.executable`` begin in the same way. A caller that is killed takes its program with it; other signals are not
passed on.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import multiprocessing.spawn
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CLIENT = """#!{python} -IS
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    text = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    server.sendmsg([len(text).to_bytes(4, "big")], streams)
    server.sendall(text)
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""
LATE = {"torch": ["torch._dynamo", "torch.distributed.run"], "tensorflow": ["keras"]}
"""What frameworks import when it is first used."""


@functools.cache
def python(*frameworks: str) -> str:
    """The path of an interpreter in which these are loaded."""
    if sys.platform != "linux":
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="preloaded-"))
    client, address = folder / "python", str(folder / "socket")
    client.write_text(CLIENT.format(python=sys.executable, address=address))
    client.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        command = [sys.executable, __file__, str(folder), str(listener.fileno()), *frameworks]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # which OpenMP reads once
        server = subprocess.Popen(command, pass_fds=[listener.fileno()], stdin=subprocess.PIPE, env=environment)
    atexit.register(server.communicate)  # ends its standard input, and with that the server
    return str(client)


def next_program(listener: socket.socket) -> list[Any] | None:
    """Return what to run, in a process of its own each; None when standard input ends."""
    signal.signal(signal.SIGCHLD, lambda *_: os.waitpid(-1, os.WNOHANG))
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        caller, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            size, streams, _, _ = socket.recv_fds(caller, 4, 3)
            with caller.makefile("rb") as file:
                request: list[Any] = json.loads(file.read(int.from_bytes(size, "big")))
            program = os.fork()
            if program:
                watch(caller, program)
            caller.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return request
        caller.close()
    return None


def watch(caller: socket.socket, program: int) -> None:
    """Tell the caller how its program ends; end the program if the caller is gone before."""
    for stream in range(3):
        os.close(stream)
    descriptor = os.pidfd_open(program)
    if descriptor not in select.select([descriptor, caller], [], [])[0]:
        os.kill(program, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    with contextlib.suppress(OSError):
        caller.sendall(bytes([code & 255]))
    os._exit(0)


def run(words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Run a program as ``python`` would."""
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    if words[0] == "-u":
        del words[0]
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    if words[0] == "-c":
        sys.path[0], sys.argv = "", ["-c", *words[2:]]
        exec(words[1], vars(sys.modules["__main__"]))
    elif words[0] == "-m":
        sys.path[0], sys.argv = directory, words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0], sys.argv = str(Path(words[0]).parent), words
        runpy.run_path(words[0], run_name="__main__")


def main(folder: str, descriptor: str, *frameworks: str) -> None:
    """Serve programs; in each of their processes, run it."""
    gc.disable()
    for name in [module for framework in frameworks for module in [framework, *LATE.get(framework, [])]]:
        importlib.import_module(name)
    gc.freeze()  # no process forked from this one need pass over them
    gc.enable()
    with socket.socket(fileno=int(descriptor)) as listener:
        request = next_program(listener)
    if request:
        multiprocessing.spawn.set_executable(sys.executable)  # which gets more than streams
        sys.executable = str(Path(folder, "python"))
        run(*request)
    else:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
