"""A big-endian system is refused with a sentence, by CMake and by the compiler."""

from __future__ import annotations

import subprocess

from repository.checkout import NATIVE, ROOT

SENTENCE = "Stoker needs a little-endian system: it takes numbers from files as they lie in memory."


def compile_with(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["c++", "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", str(NATIVE), *words, "-"]
    program = '#include "core/base/little_endian.h"\n'
    return subprocess.run(command, input=program, capture_output=True, text=True, check=False)


def test_the_compiler_refuses_a_big_endian_system() -> None:
    assert compile_with().returncode == 0
    refused = compile_with("-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__")
    assert refused.returncode != 0
    assert SENTENCE in refused.stderr


def test_cmake_refuses_it_with_the_same_sentence() -> None:
    text = (ROOT / "cmake" / "Requirements.cmake").read_text(encoding="utf-8")
    assert f'if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")\n  message(FATAL_ERROR "{SENTENCE}")' in text
