#include "pack/show_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/words.h"
#include "pack/show_html.h"

namespace packtrain {

namespace {

// A chart's canvas, in units that are pixels at the page's usual width.
constexpr double kWidth = 560, kHeight = 240, kLeft = 62, kRight = 26, kTop = 12, kBottom = 34;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kFloor = kTop + kPlotHeight;

enum class Unit { count, bytes };
std::string in_words(Unit unit, double value) {
  const auto whole = static_cast<uint64_t>(std::llround(std::max(value, 0.0)));
  return unit == Unit::bytes ? bytes_in_words(whole) : count_in_words(whole);
}

// The smallest of 1, 2, 5, 10, 20, … that cuts `span` into at most `parts`.
double nice_step(double span, int parts) {
  double power = std::pow(10.0, std::floor(std::log10(std::max(span / parts, 1e-9))));
  for (const double factor : {1.0, 2.0, 5.0, 10.0})
    if (power * factor * parts >= span) return std::max(power * factor, 1.0);
  return power * 10;
}

std::string open_svg(std::string_view label) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth, kHeight, label);
}

// Horizontal lines with their values at the left, from 0 to `most`.
std::string value_axis(Unit unit, double most) {
  std::string out;
  const double step = nice_step(most, 4);
  for (double value = 0; value <= most * 1.0001; value += step) {
    const double y = kFloor - value / most * kPlotHeight;
    out += fmt::format("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>", kLeft, y, kWidth - kRight);
    out += fmt::format("<text class=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", kLeft - 6, y + 4,
                       in_words(unit, value));
  }
  return out;
}

std::string tick(double x, std::string_view text) {
  return fmt::format("<text class=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x, kFloor + 18, text);
}

std::string bar(double x, double width, double height, std::string_view title) {
  const double gap = width > 4 ? 1 : 0;
  return fmt::format(
      "<rect class=\"bar\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
      "height=\"{:.2f}\"><title>{}</title></rect>\n",
      x + gap / 2, kFloor - height, std::max(width - gap, 0.5), height, title);
}

std::string note(std::string_view text) { return fmt::format("<p class=\"note\">{}</p>\n", text); }

// Few classes: a bar for each, with its name. Plain HTML, so that long names wrap and can be searched.
std::string named_bars(const Manifest& manifest, const std::vector<uint64_t>& counts) {
  const uint64_t most = std::max<uint64_t>(*std::max_element(counts.begin(), counts.end()), 1);
  std::string out = "<div class=\"bars\">\n";
  for (size_t label = 0; label < counts.size(); ++label)
    out += fmt::format(
        "<div class=\"row\"><span class=\"name\" title=\"{0}\">{0}</span><span class=\"track\"><i "
        "style=\"width:{1:.2f}%\"></i></span><span class=\"count\">{2}</span></div>\n",
        html_text(class_name(manifest, static_cast<int64_t>(label)), 80),
        100.0 * static_cast<double>(counts[label]) / static_cast<double>(most),
        count_in_words(counts[label]));
  return out + "</div>\n";
}

std::string named_list(std::string_view title, const Manifest& manifest, const std::vector<uint64_t>& counts,
                       const std::vector<size_t>& labels) {
  std::string out = fmt::format("<div class=\"list\"><h3>{}</h3><ol>\n", title);
  for (const size_t label : labels)
    out += fmt::format("<li><span>{}</span><b>{}</b></li>\n",
                       html_text(class_name(manifest, static_cast<int64_t>(label)), 80),
                       count_in_words(counts[label]));
  return out + "</ol></div>\n";
}

// Many classes: their counts in falling order, and the ends of that order by name.
std::string class_profile(const Manifest& manifest, const std::vector<uint64_t>& counts) {
  constexpr size_t kListed = 8, kPoints = 400;
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return counts[a] > counts[b]; });
  const double most = static_cast<double>(std::max<uint64_t>(counts[order.front()], 1)) * 1.05;
  std::string line = fmt::format("M{} {}", kLeft, kFloor);
  const size_t points = std::min(order.size(), kPoints);
  for (size_t i = 0; i < points; ++i) {
    const size_t rank = points > 1 ? i * (order.size() - 1) / (points - 1) : 0;
    line += fmt::format("L{:.1f} {:.1f}",
                        kLeft + kPlotWidth * static_cast<double>(i) / std::max(points - 1.0, 1.0),
                        kFloor - kPlotHeight * static_cast<double>(counts[order[rank]]) / most);
  }
  line += fmt::format("L{} {}Z", kWidth - kRight, kFloor);
  std::string out = "<div class=\"beside\"><div>" + open_svg("samples per class, largest first") +
                    value_axis(Unit::count, most) + fmt::format("<path class=\"area\" d=\"{}\"/>", line);
  out += tick(kLeft + kPlotWidth / 2, count_in_words(order.size()) + " classes, largest first") +
         "</svg></div>\n";
  const auto listed = static_cast<ptrdiff_t>(std::min(kListed, order.size()));
  out += named_list("Largest", manifest, counts, {order.begin(), order.begin() + listed});
  out += named_list("Smallest", manifest, counts, {order.rbegin(), order.rbegin() + listed});
  return out + "</div>\n";
}

// Positions for labels on a logarithmic axis: 1, 2, 5 times powers of ten, thinned out where they are many.
std::vector<double> log_ticks(double least, double most) {
  for (const auto& factors : {std::vector<double>{1, 2, 5}, std::vector<double>{1}}) {
    std::vector<double> ticks;
    for (double power = std::pow(10.0, std::floor(std::log10(least))); power <= most; power *= 10)
      for (const double factor : factors)
        if (power * factor >= least && power * factor <= most) ticks.push_back(power * factor);
    if (ticks.size() >= 2 && ticks.size() <= 7) return ticks;
  }
  return {least, std::sqrt(least * most), most};
}

uint64_t at_part(const std::vector<uint64_t>& sorted, double part) {
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
}

// One bar per shard; where they are too many to tell apart, one per group with its mean.
std::string shard_bars(std::string_view label, Unit unit, const std::vector<uint64_t>& values) {
  constexpr size_t kMostBars = 240;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const double mean = sum / static_cast<double>(values.size());
  const double top = std::max(static_cast<double>(*most), 1.0) * 1.08;
  const size_t bars = std::min(values.size(), kMostBars);
  const double width = kPlotWidth / static_cast<double>(bars);
  std::string out = open_svg(label) + value_axis(unit, top);
  for (size_t i = 0; i < bars; ++i) {
    const size_t first = i * values.size() / bars, end = (i + 1) * values.size() / bars;
    const double value = std::accumulate(values.begin() + static_cast<ptrdiff_t>(first),
                                         values.begin() + static_cast<ptrdiff_t>(end), 0.0) /
                         static_cast<double>(end - first);
    const std::string which = end - first == 1 ? fmt::format("shard {}", first)
                                               : fmt::format("shards {} to {}, mean", first, end - 1);
    out += bar(kLeft + width * static_cast<double>(i), width, kPlotHeight * value / top,
               which + ": " + in_words(unit, value));
  }
  out += fmt::format("<path class=\"mean\" d=\"M{} {:.1f}H{}\"/>", kLeft, kFloor - kPlotHeight * mean / top,
                     kWidth - kRight);
  out += tick(kLeft + kPlotWidth / 2, std::string(label)) + "</svg>\n";
  const double spread = mean > 0 ? (static_cast<double>(*most) - static_cast<double>(*least)) / mean * 50 : 0;
  return "<div>" + out +
         note(fmt::format("least {}, mean {}, most {}: ±{:.2g} %",
                          in_words(unit, static_cast<double>(*least)), in_words(unit, mean),
                          in_words(unit, static_cast<double>(*most)), spread)) +
         "</div>\n";
}

}  // namespace

std::string class_chart(const Manifest& manifest, const ClassFacts& facts) {
  constexpr size_t kMostNamed = 60;
  std::string out;
  if (facts.counts.empty()) return note("The samples have no classes.");
  const auto [least, most] = std::minmax_element(facts.counts.begin(), facts.counts.end());
  out += facts.counts.size() <= kMostNamed ? named_bars(manifest, facts.counts)
                                           : class_profile(manifest, facts.counts);
  std::string words =
      fmt::format("{} classes, between {} and {} samples each", count_in_words(facts.counts.size()),
                  count_in_words(*least), count_in_words(*most));
  if (facts.unlabelled > 0) words += "; " + count_in_words(facts.unlabelled) + " samples have no label";
  return out + note(words + ".");
}

std::string size_chart(const std::vector<uint64_t>& sizes) {
  if (sizes.empty()) return note("There are no samples.");
  if (sizes.front() == sizes.back()) return note("Every sample has " + bytes_in_words(sizes.front()) + ".");
  constexpr size_t kBins = 36;
  // A few strays must not flatten the rest: they are counted in the bars at the ends.
  const double least =
      std::max({static_cast<double>(sizes.front()), static_cast<double>(at_part(sizes, 0.005)) / 2, 1.0});
  const double most =
      std::max(std::min(static_cast<double>(sizes.back()), static_cast<double>(at_part(sizes, 0.995)) * 2),
               least * 1.5);
  const double octaves = std::log(most / least);
  const auto place = [&](double bytes) { return std::log(std::clamp(bytes, least, most) / least) / octaves; };
  std::vector<uint64_t> bins(kBins, 0);
  for (const uint64_t size : sizes)
    ++bins[std::min(static_cast<size_t>(place(static_cast<double>(size)) * kBins), kBins - 1)];
  const double top = static_cast<double>(*std::max_element(bins.begin(), bins.end())) * 1.05;
  std::string out = open_svg("bytes per sample, logarithmic") + value_axis(Unit::count, top);
  const double width = kPlotWidth / kBins;
  for (size_t i = 0; i < kBins; ++i) {
    if (bins[i] == 0) continue;
    const auto edge = [&](size_t k) { return least * std::exp(octaves * static_cast<double>(k) / kBins); };
    out +=
        bar(kLeft + width * static_cast<double>(i), width, kPlotHeight * static_cast<double>(bins[i]) / top,
            fmt::format("{} to {}: {}", in_words(Unit::bytes, edge(i)), in_words(Unit::bytes, edge(i + 1)),
                        count_in_words(bins[i])));
  }
  for (const double bytes : log_ticks(least, most))
    out += tick(kLeft + kPlotWidth * place(bytes), in_words(Unit::bytes, bytes));
  const double mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size());
  return out + "</svg>\n" +
         note(fmt::format("mean {}, median {}; 98 % lie between {} and {}.", in_words(Unit::bytes, mean),
                          bytes_in_words(at_part(sizes, 0.5)), bytes_in_words(at_part(sizes, 0.01)),
                          bytes_in_words(at_part(sizes, 0.99))));
}

std::string shape_chart(const ShapeCounts& shapes) {
  if (shapes.empty()) return note("No image sizes are known.");
  constexpr size_t kMostPoints = 500;
  constexpr uint32_t kCells = 48;
  uint64_t images = 0, most_of_one = 0;
  double side = 1, pixels = 0;
  for (const auto& [shape, count] : shapes) {
    images += count;
    side = std::max({side, double(shape.first), double(shape.second)});
    pixels += double(shape.first) * shape.second * static_cast<double>(count);
  }
  // Many sizes fall into cells of a grid; the rest are drawn where they are.
  ShapeCounts drawn;
  const auto cell = static_cast<uint32_t>(side / kCells) + 1;
  const auto snap = [&](uint32_t value) {
    return shapes.size() > kMostPoints ? value / cell * cell + cell / 2 : value;
  };
  for (const auto& [shape, count] : shapes) drawn[{snap(shape.first), snap(shape.second)}] += count;
  for (const auto& [shape, count] : drawn) most_of_one = std::max(most_of_one, count);

  side *= 1.06;
  std::string out = open_svg("width and height of images");
  const double step = nice_step(side, 4), step_across = nice_step(side, 7);
  for (double value = 0; value <= side; value += step) {
    const double y = kFloor - value / side * kPlotHeight;
    out += fmt::format("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>", kLeft, y, kWidth - kRight);
    out += fmt::format("<text class=\"end\" x=\"{}\" y=\"{:.1f}\">{:.0f}</text>\n", kLeft - 6, y + 4, value);
  }
  for (double value = step_across; value <= side; value += step_across)
    out += tick(kLeft + value / side * kPlotWidth, fmt::format("{:.0f}", value));
  out +=
      fmt::format("<path class=\"grid square\" d=\"M{} {}L{} {}\"/>\n", kLeft, kFloor, kWidth - kRight, kTop);
  for (const auto& [shape, count] : drawn) {
    const double radius = 2 + 14 * std::sqrt(static_cast<double>(count) / static_cast<double>(most_of_one));
    out += fmt::format(
        "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"><title>{} x {}: "
        "{}</title></circle>\n",
        kLeft + shape.first / side * kPlotWidth, kFloor - shape.second / side * kPlotHeight, radius,
        shape.first, shape.second, count_in_words(count));
  }
  const auto common = std::max_element(shapes.begin(), shapes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return out + "</svg>\n" +
         note(fmt::format(
             "Width across, height upwards, in pixels; the line is square. {} images looked at: mean {:.2f} "
             "Mpixel, most often {} x {} ({:.0f} %).",
             count_in_words(images), pixels / static_cast<double>(images) / 1e6, common->first.first,
             common->first.second,
             100.0 * static_cast<double>(common->second) / static_cast<double>(images)));
}

std::string shard_chart(const std::vector<ShardSpec>& shards) {
  if (shards.empty()) return note("There are no shards.");
  std::vector<uint64_t> samples, bytes;
  for (const ShardSpec& shard : shards) {
    samples.push_back(shard.samples);
    bytes.push_back(shard.bytes);
  }
  return "<div class=\"pair\">" + shard_bars("samples per shard", Unit::count, samples) +
         shard_bars("bytes per shard", Unit::bytes, bytes) + "</div>\n";
}

}  // namespace packtrain
