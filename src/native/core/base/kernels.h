// Kernels: sets of functions that exist once for each instruction set, of which the processor decides.
//
// Files named after an instruction set hold its kernels and are compiled for it. They do not include this
// file, and all functions in their objects are their own: of an inline function or a template with a name,
// the linker could keep the copy for the newer processor for all of the program. So they define what they
// need in an unnamed namespace, call others' inline functions only where those are always inlined, and take
// pointers in place of the standard library's containers. tests/repository/test_kernel_files.py looks at the
// objects.
#pragma once

#include <initializer_list>
#include <vector>

namespace stoker {

enum class InstructionSet { kAny, kSse42, kAvx2, kBmi2, kVpclmul, kAvx512, kNeon, kArmCrc };

// The highest level of kernels that run: the best this processor has, or the one that the environment
// variable STOKER_KERNELS names when this is first asked. On x86-64 "portable", "sse42" (SSE4.2), "avx2"
// (AVX2, and BMI2 and VPCLMULQDQ where they are there) or "avx512" (AVX-512 with VNNI and VBMI: Ice Lake, Zen
// 4 and newer); on ARM64 "portable" or "neon" (NEON, and the CRC instructions where there are some). Throws
// kBadArgument where the variable names another.
const char* kernel_level();

// Whether the processor that this runs on has it, and the level includes it.
bool has(InstructionSet set);

template <typename Kernels>
struct BuiltKernels {
  InstructionSet needs;
  const Kernels* kernels;
};

// Those of `fastest_first` that may run here.
template <typename Kernels>
std::vector<const Kernels*> runnable(std::initializer_list<BuiltKernels<Kernels>> fastest_first) {
  std::vector<const Kernels*> list;
  for (const BuiltKernels<Kernels>& built : fastest_first) {
    if (has(built.needs)) list.push_back(built.kernels);
  }
  return list;
}

}  // namespace stoker
