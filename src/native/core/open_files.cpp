#include "core/open_files.h"

#include <utility>

namespace stoker {

void OpenFiles::add(std::string path, std::string name) {
  if (name.empty()) name = path;
  places_.push_back({std::move(path), std::move(name)});
  files_.emplace_back();
}

std::shared_ptr<const ShardFile> OpenFiles::open(size_t index) const {
  const std::lock_guard lock(mutex_);
  if (!files_[index]) {
    auto file = std::make_shared<const ShardFile>(places_[index].path, places_[index].name);
    if (open_.size() >= most_) {  // readers that still use it keep it open until they are done
      files_[open_.front()].reset();
      open_.pop_front();
    }
    files_[index] = std::move(file);
    open_.push_back(index);
  }
  return files_[index];
}

}  // namespace stoker
