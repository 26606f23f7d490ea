// A list of files whose columns may lie, over archives and files that may be cut: it is refused, or every
// sample is the bytes at its offset or an error, and every object that is shown is one of its own.
#include "core/sources/file_set.h"

#include <algorithm>
#include <optional>

#include "fuzz/input.h"
#include "fuzz/invariant.h"
#include "fuzz/memory_file.h"

namespace {

using stoker::fuzz::Input;
using stoker::fuzz::MemoryFile;
using stoker::fuzz::require;

// Small numbers mostly, and now and then one that is out of range.
int64_t number(Input& input) {
  const uint32_t word = input.word();
  if (word < 0xFF00) return word % 512;
  const int64_t odd[] = {-1, INT64_MIN, INT64_MAX, int64_t{1} << 32, int64_t{1} << 31, -2};
  return odd[word % std::size(odd)];
}

std::vector<int64_t> numbers(Input& input, size_t count) {
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = number(input);
  return values;
}

// Sums of small steps where the input says so, so that a list is often a sound one.
std::vector<int64_t> starts(Input& input, size_t count, bool sound, int64_t step) {
  std::vector<int64_t> values = numbers(input, count);
  if (!sound) return values;
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<int64_t>(i) * step;
  return values;
}

void read(const stoker::FileSet& files, const stoker::FileList& list, std::span<const uint8_t> archive) {
  stoker::SourceScratch scratch;
  std::vector<stoker::LabelledBox> boxes;
  for (uint64_t i = 0; i < files.size(); ++i) {
    stoker::fuzz::succeeds([&] {
      const auto bytes = files.fetch(i, scratch);
      if (list.archive_of[i] < 0) return;
      const auto begin = static_cast<size_t>(list.offsets[i]), size = static_cast<size_t>(list.sizes[i]);
      require(begin <= archive.size() || size == 0);
      require(std::ranges::equal(bytes, size == 0 ? archive.first(0) : archive.subspan(begin, size)));
    });
    stoker::fuzz::succeeds([&] { files.where(i); });
    boxes.clear();
    stoker::fuzz::succeeds([&] { files.append_boxes(i, {}, 7, scratch, boxes); });
    for (const int32_t object : {stoker::kWholeImage, 0, 3, -2}) {
      std::string name;
      const bool shown = stoker::fuzz::succeeds([&] { files.describe({i, object}, {}, scratch, name); });
      require(shown ==
              (object == stoker::kWholeImage || (object >= 0 && static_cast<size_t>(object) < boxes.size())));
    }
  }
  require(!stoker::fuzz::succeeds([&] { files.fetch(files.size(), scratch); }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint8_t choice = input.byte();
  const size_t rows = input.byte() % 6, others = (choice & 1) != 0 ? input.byte() % 6 : rows;
  stoker::FileList list;
  list.base = "/proc/self/fd";
  list.labels = numbers(input, rows);
  list.sizes = numbers(input, others);
  list.offsets = numbers(input, rows);
  list.starts = starts(input, rows + 1, (choice & 2) != 0, 1);
  for (size_t i = 0; i < rows; ++i) list.archive_of.push_back(static_cast<int32_t>(number(input) % 3) - 1);
  const auto box_starts = starts(input, rows + 1, (choice & 4) != 0, input.byte() % 3);
  const std::vector<stoker::ObjectBox> boxes(input.byte() % 16);
  const std::vector<uint8_t> bytes = input.rest();
  const MemoryFile archive(bytes);
  list.archives = {archive.path(), "/nowhere"};
  list.names.assign(bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(bytes.size(), 8)));
  std::optional<stoker::FileSet> files;
  if (!stoker::fuzz::succeeds([&] { files.emplace(list); })) return 0;
  stoker::fuzz::succeeds([&] { files->set_boxes(box_starts, boxes); });
  read(*files, list, bytes);
  return 0;
}
