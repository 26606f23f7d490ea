// Kernels: sets of functions that exist once for each instruction set, of which the processor decides.
//
// Files named after an instruction set hold its kernels and are compiled for it. They do not include this
// file, and keep what they define in an unnamed namespace: of an inline function with a name, the linker
// could keep the copy for the newer processor for all of the program.
#pragma once

#include <initializer_list>
#include <vector>

namespace stoker {

enum class InstructionSet { kAny, kSse42, kAvx2, kBmi2, kNeon, kArmCrc };

// Whether the processor that this runs on has it.
bool has(InstructionSet set);

template <typename Kernels>
struct BuiltKernels {
  InstructionSet needs;
  const Kernels* kernels;
};

// Those of `fastest_first` that this processor can run.
template <typename Kernels>
std::vector<const Kernels*> runnable(std::initializer_list<BuiltKernels<Kernels>> fastest_first) {
  std::vector<const Kernels*> list;
  for (const BuiltKernels<Kernels>& built : fastest_first) {
    if (has(built.needs)) list.push_back(built.kernels);
  }
  return list;
}

}  // namespace stoker
