#include "core/shards/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace stoker {

size_t most_open_files() {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  return static_cast<size_t>(std::clamp<rlim_t>(known ? limit.rlim_cur / 2 : 0, 16, 4096));
}

void OpenFiles::add(std::string path, std::string name) {
  if (name.empty()) name = path;
  entries_.push_back({std::move(path), std::move(name)});
  files_.add();
}

std::shared_ptr<const RandomAccessFile> OpenFiles::open(size_t index) const {
  const Entry& entry = entries_[index];
  return files_.get(
      index, [&] { return std::make_unique<const RandomAccessFile>(entry.path, entry.name); },
      [](const RandomAccessFile&) { return uint64_t{1}; });
}

}  // namespace stoker
