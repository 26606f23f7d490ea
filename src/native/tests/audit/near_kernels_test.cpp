// One body of tests, run against every set of kernels that this processor has.
#include "core/audit/near_kernels.h"

#include <doctest/doctest.h>

#include <bit>
#include <memory>
#include <random>
#include <string>

TEST_CASE("hashes of blocks are near that differ in few bits") {
  constexpr size_t kBlocks = 40;
  std::mt19937_64 random(1);
  const uint64_t wanted = random();
  const auto blocks = std::make_unique<stoker::HashBlock[]>(kBlocks);
  int differing[kBlocks][stoker::kBlockHashes];
  for (size_t block = 0; block < kBlocks; ++block) {
    for (size_t i = 0; i < stoker::kBlockHashes; ++i) {
      uint64_t changed = 0;  // in more bits the later the block is
      for (size_t bit = 0; bit < block; ++bit) changed |= uint64_t{1} << random() % 48;
      differing[block][i] = std::popcount(changed);
      for (size_t nibble = 0; nibble < stoker::kBlockNibbles; ++nibble) {
        blocks[block].nibbles[nibble][i] = (wanted ^ changed) >> (4 * nibble) & 15;
      }
    }
  }
  for (const stoker::NearKernels* kernels : stoker::near_kernels()) {
    INFO("kernels: " << std::string(kernels->name));
    for (const int distance : {0, 3, 11}) {
      size_t at = 0;
      for (size_t block = 0; block < kBlocks; ++block) {
        uint32_t expected = 0;
        for (size_t i = 0; i < stoker::kBlockHashes; ++i) {
          expected |= uint32_t{differing[block][i] <= distance} << i;
        }
        if (expected == 0) continue;
        CHECK(kernels->next(wanted, blocks.get(), at, kBlocks, distance) == expected);
        CHECK(at == block);
        ++at;
      }
      CHECK(kernels->next(wanted, blocks.get(), at, kBlocks, distance) == 0);
      CHECK(at == kBlocks);
    }
  }
}
