// Inputs that a target keeps lie beside its program, below the build directory, unless -artifact_prefix says
// where: a run by hand must not leave them in the checkout.
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view kOption = "-artifact_prefix=";
  static std::vector<char*> all(*arguments, *arguments + *count);
  for (const char* argument : all) {
    if (std::string_view(argument).starts_with(kOption)) return 0;
  }
  static std::string prefix = std::string(kOption) + all[0] + "-";
  all.push_back(prefix.data());
  *count = static_cast<int>(all.size());
  all.push_back(nullptr);
  *arguments = all.data();
  return 0;
}
