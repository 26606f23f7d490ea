// Random changes of colour, with the random choices of torchvision's ColorJitter.
#include "core/color/color_jitter.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/operations/operation.h"

namespace stoker {
namespace {

constexpr const char* kNames[kColorOps] = {"brightness", "contrast", "saturation", "hue"};

class ColorJitter : public PixelOperation {
 public:
  // Bounds of hue are shifts, -0.5 to 0.5 of the circle; all others are factors, 1 for no change.
  explicit ColorJitter(OperationSettings& settings) {
    for (size_t op = 0; op < kColorOps; ++op) {
      const bool hue = static_cast<ColorOp>(op) == ColorOp::kHue;
      const double neutral = hue ? 0.0 : 1.0;
      bounds_[op] = settings.bounds_around(kNames[op], neutral, hue ? -0.5 : 0.0,
                                           hue ? 0.5 : std::numeric_limits<float>::max());
      is_done_[op] = bounds_[op].low != neutral || bounds_[op].high != neutral;
    }
  }

  bool changes() const {
    return std::ranges::any_of(is_done_, [](bool done) { return done; });
  }

  void change(const SampleRandom& random, RgbSlot rows, Extent size) const override {
    apply_jitter(plan(random), rows, size);
  }

  std::vector<OperationStep> steps(const SampleRandom& random) const override {
    const JitterPlan planned = plan(random);
    std::vector<OperationStep> steps;
    for (size_t i = 0; i < planned.count; ++i) {
      const auto op = static_cast<size_t>(planned.order[i]);
      steps.emplace_back(kNames[op], planned.factors[op]);
    }
    return steps;
  }

 private:
  JitterPlan plan(const SampleRandom& random) const {
    JitterPlan plan;
    const auto shares = random.draw(RandomOp::kColor, 0), picks = random.draw(RandomOp::kColor, 1);
    for (size_t op = 0; op < kColorOps; ++op) {
      plan.factors[op] = bounds_[op].at(unit(shares[op]));
      if (is_done_[op]) plan.order[plan.count++] = static_cast<ColorOp>(op);
    }
    for (auto last = static_cast<uint32_t>(plan.count); last > 1; --last) {
      std::swap(plan.order[last - 1], plan.order[pick(picks[last - 1], last)]);
    }
    return plan;
  }

  std::array<Bounds, kColorOps> bounds_;
  std::array<bool, kColorOps> is_done_{};
};

}  // namespace

std::shared_ptr<const PixelOperation> color_jitter(OperationSettings& settings) {
  auto jitter = std::make_shared<ColorJitter>(settings);
  if (!jitter->changes()) return nullptr;
  return jitter;
}

}  // namespace stoker
