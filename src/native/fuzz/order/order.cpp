// Orders of any number of items, in blocks and windows of any size: an error, or items that lie inside, whose
// positions are those that were asked for; and all of them where they are few.
#include "core/order/order.h"

#include <algorithm>
#include <array>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/invariant.h"

namespace {

using stoker::fuzz::Input;
using stoker::fuzz::require;

constexpr uint64_t kTaken = 32;

uint64_t wide(Input& input) {
  uint64_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 16 | input.word();
  return value;
}

// A small number, one near a power of two, or any.
uint64_t some_count(Input& input) {
  const uint8_t choice = input.byte();
  if (choice < 128) return choice;
  if (choice < 224) return (uint64_t{1} << choice % 64) + input.byte() - 8;
  return wide(input);
}

void check(const stoker::Permutation& order, uint64_t n, uint64_t start, std::span<const uint64_t> items) {
  for (size_t i = 0; i < items.size(); ++i) {
    require(items[i] < n && items[i] == order(start + i) && order.position_of(items[i]) == start + i);
  }
}

void check(const stoker::BlockPermutation& order, uint64_t n, uint64_t start,
           std::span<const uint64_t> items) {
  for (size_t i = 0; i < items.size(); ++i) {
    require(items[i] < n && order.position_of(items[i]) == start + i);
  }
}

void check_all(std::vector<uint64_t> items) {
  std::ranges::sort(items);
  for (size_t i = 0; i < items.size(); ++i) require(items[i] == i);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint64_t n = some_count(input), block = some_count(input), window = some_count(input);
  const uint64_t seed = wide(input), epoch = wide(input), any = wide(input);
  const bool sound = n >= 1 && n < uint64_t{1} << 62;
  const uint64_t start = sound ? any % n : 0;
  std::vector<uint64_t> items(sound ? std::min(n - start, kTaken) : 0);
  const bool accepted = stoker::fuzz::succeeds([&] {
    const stoker::Permutation order(n, seed, epoch);
    for (size_t i = 0; i < items.size(); ++i) items[i] = order(start + i);
    check(order, n, start, items);
    if (start == 0 && items.size() == n) check_all(items);
  });
  require(accepted == sound);
  const bool in_blocks = stoker::fuzz::succeeds([&] {
    const stoker::BlockPermutation order(n, block, window, seed, epoch);
    order.take(start, items);
    check(order, n, start, items);
    if (start == 0 && items.size() == n) check_all(items);
  });
  require(in_blocks == (sound && block >= 1 && window >= 1));
  return 0;
}
