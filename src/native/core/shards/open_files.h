// Files that stay open for positioned reads, but never too many of them at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random_access_file.h"
#include "core/shards/cached_table.h"

namespace stoker {

// How many files a set of shards may keep open: half of what this process may open (RLIMIT_NOFILE), 4096 at
// most, so that the program around it never runs out.
size_t most_open_files();

// add() first, then open() from any thread. The first files that were opened stay open (see CachedTable).
class OpenFiles {
 public:
  // At most `most` are open at a time, beside those that a reader still holds.
  explicit OpenFiles(size_t most) : files_(most) {}

  // `name` is what messages call the file; its path when empty.
  void add(std::string path, std::string name);

  size_t size() const { return entries_.size(); }
  const std::string& name(size_t index) const { return entries_[index].name; }

  // The file, opened now unless it still is; not to be held longer than this object lives. Throws as
  // RandomAccessFile's constructor.
  std::shared_ptr<const RandomAccessFile> open(size_t index) const;

 private:
  struct Entry {
    std::string path;
    std::string name;
  };

  std::vector<Entry> entries_;
  CachedTable<RandomAccessFile> files_;
};

}  // namespace stoker
