#include "train/tile_growth.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tilecast {
namespace {

constexpr int kDeepest = 12;
constexpr size_t kSmallestLeaf = 20;

struct Sample {
  TileFeatures features;
  int label;
};

/// Weighted Gini impurity of a count of labels: n - Σ c² / n.
double impurity(const std::vector<double>& counts, double n) {
  if (n <= 0) return 0;
  double squares = 0;
  for (double c : counts) squares += c * c;
  return n - squares / n;
}

class Grower {
 public:
  Grower(std::vector<Sample> samples, std::vector<Tile> tiles)
      : samples_(std::move(samples)), tiles_(std::move(tiles)) {}

  std::vector<TileTree::Node> grow() {
    std::vector<size_t> all(samples_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    split(all, 0);
    return std::move(nodes_);
  }

 private:
  struct Cut {
    int feature = -1;
    float threshold = 0;
    double gain = 0;
  };

  std::vector<double> count(const std::vector<size_t>& rows) const {
    std::vector<double> counts(tiles_.size(), 0);
    for (size_t r : rows) counts[static_cast<size_t>(samples_[r].label)] += 1;
    return counts;
  }

  Cut best_cut(std::vector<size_t>& rows, const std::vector<double>& counts) const {
    const auto n = static_cast<double>(rows.size());
    const double whole = impurity(counts, n);
    Cut best;
    for (size_t f = 0; f < kTileFeatures; ++f) {
      std::sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
        const float x = samples_[a].features[f];
        const float y = samples_[b].features[f];
        return x != y ? x < y : a < b;
      });
      std::vector<double> left(tiles_.size(), 0);
      std::vector<double> right = counts;
      for (size_t i = 0; i + 1 < rows.size(); ++i) {
        const auto label = static_cast<size_t>(samples_[rows[i]].label);
        left[label] += 1;
        right[label] -= 1;
        const float here = samples_[rows[i]].features[f];
        const float next = samples_[rows[i + 1]].features[f];
        if (here == next || i + 1 < kSmallestLeaf || rows.size() - i - 1 < kSmallestLeaf) continue;
        const auto nl = static_cast<double>(i + 1);
        const double gain = whole - impurity(left, nl) - impurity(right, n - nl);
        if (gain > best.gain + 1e-9) best = {static_cast<int>(f), (here + next) / 2, gain};
      }
    }
    return best;
  }

  int32_t split(std::vector<size_t> rows, int depth) {
    const auto index = static_cast<int32_t>(nodes_.size());
    nodes_.emplace_back();
    const std::vector<double> counts = count(rows);
    const auto most = std::max_element(counts.begin(), counts.end()) - counts.begin();
    nodes_[static_cast<size_t>(index)].tile = tiles_[static_cast<size_t>(most)];
    if (depth == kDeepest || rows.size() < 2 * kSmallestLeaf) return index;
    const Cut cut = best_cut(rows, counts);
    if (cut.feature < 0) return index;
    std::vector<size_t> left;
    std::vector<size_t> right;
    for (size_t r : rows) {
      const bool below = samples_[r].features[static_cast<size_t>(cut.feature)] < cut.threshold;
      (below ? left : right).push_back(r);
    }
    std::sort(left.begin(), left.end());
    std::sort(right.begin(), right.end());
    const int32_t left_index = split(std::move(left), depth + 1);
    const int32_t right_index = split(std::move(right), depth + 1);
    TileTree::Node& node = nodes_[static_cast<size_t>(index)];
    node = {cut.feature, cut.threshold, left_index, right_index, node.tile};
    return index;
  }

  std::vector<Sample> samples_;
  std::vector<Tile> tiles_;
  std::vector<TileTree::Node> nodes_;
};

}  // namespace

TileTree grow_tile_tree(const TrainingData& data, const std::vector<bool>& use,
                        const std::string& vendor) {
  std::map<std::pair<int32_t, int32_t>, int> labels;
  std::vector<Tile> tiles;
  std::vector<Sample> samples;
  for (size_t i = 0; i < data.rows.size(); ++i) {
    const TrainingRow& row = data.rows[i];
    const Device& device = data.devices[row.device];
    if (!use[i] || !row.tile || device.vendor != vendor) continue;
    const auto [it, fresh] =
        labels.emplace(std::make_pair(row.tile->m, row.tile->n), static_cast<int>(tiles.size()));
    if (fresh) tiles.push_back(*row.tile);
    samples.push_back({tile_features(row.kernel, device), it->second});
  }
  TileTree tree;
  tree.library = vendor;
  if (!samples.empty()) tree.nodes = Grower(std::move(samples), std::move(tiles)).grow();
  return tree;
}

}  // namespace tilecast
