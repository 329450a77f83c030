// Photo-like JPEGs. All arithmetic is in integers, so that every compiler and machine paints the same pixels.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "pack/synth_noise.h"
#include "pack/synth_random.h"
#include "pack/synth_sample.h"
#include "packtrain/decode.h"

namespace packtrain {

namespace {

struct Colour {
  int32_t red = 0, green = 0, blue = 0;
};

Colour blend(const Colour& from, const Colour& to, int32_t part, int32_t whole) {
  return {from.red + (to.red - from.red) * part / whole, from.green + (to.green - from.green) * part / whole,
          from.blue + (to.blue - from.blue) * part / whole};
}

// `hue` in [0, 1536): red, yellow, green, cyan, blue, magenta; `strength` and `value` in [0, 255].
Colour from_hue(uint32_t hue, int32_t strength, int32_t value) {
  const auto rise = static_cast<int32_t>(hue % 256);
  const int32_t fall = 255 - rise;
  const std::array<Colour, 6> pure = {
      {{255, rise, 0}, {fall, 255, 0}, {0, 255, rise}, {0, fall, 255}, {rise, 0, 255}, {255, 0, fall}}};
  const Colour& full = pure[hue / 256 % 6];
  const auto dim = [&](int32_t channel) { return (255 - (255 - channel) * strength / 255) * value / 255; };
  return {dim(full.red), dim(full.green), dim(full.blue)};
}

enum class Outline : uint8_t { disc, box, diamond, ring };
constexpr uint32_t kOutlines = 4;

// Object coordinates: 1 << 10 is the radius.
constexpr int32_t kRadius = 1 << 10;

// An object: an outline with a colour and a striped texture, turned, stretched and lit from above.
struct Thing {
  Outline outline = Outline::disc;
  Colour colour;
  int32_t centre_x = 0, centre_y = 0;
  int32_t radius = 1;        // in pixels, of the longer axis
  int32_t flatness = 256;    // in 1/256: how much shorter the other axis is
  uint32_t turn = 0;         // in 1/kWaveSteps
  int32_t stripes = 0;       // over the diameter
  uint32_t stripe_turn = 0;  // of the stripes against the object
  int32_t stripe_depth = 0;  // grey levels
  int32_t roughness = 0;     // gain of the fine noise, in 1/256
};

struct Scene {
  uint32_t width = 0, height = 0;
  Colour sky_top, sky_low, ground_near, ground_far;
  int32_t horizon = 0;
  std::vector<int32_t> skyline;                     // the first row of ground in each column
  int32_t cloud = 0;                                // gain of the coarse noise
  int32_t sky_roughness = 0, ground_roughness = 0;  // gains of the fine noise
  int32_t tint = 0;                                 // gain of the noise in colour
  uint32_t noise_x = 0, noise_y = 0;
  std::vector<Thing> things;
};

// The lines of one row of the picture while it is painted, and the noise along it.
struct Row {
  explicit Row(uint32_t width) : red(width), green(width), blue(width) {}
  std::vector<int32_t> red, green, blue;
  const int8_t *coarse = nullptr, *other = nullptr, *fine = nullptr;
};

void paint_background(const Scene& scene, int32_t y, Row& row) {
  const auto height = static_cast<int32_t>(scene.height);
  const int32_t sky_rows = std::max(scene.horizon, 1), ground_rows = std::max(height - scene.horizon, 1);
  const int32_t below_horizon = std::max(y - scene.horizon, 0);
  const Colour sky = blend(scene.sky_top, scene.sky_low, std::min(y, sky_rows), sky_rows);
  const Colour ground = blend(scene.ground_far, scene.ground_near, below_horizon, ground_rows);
  // Ground grows rougher towards the viewer.
  const int32_t ground_roughness = scene.ground_roughness * (160 + 160 * below_horizon / ground_rows) / 256;
  const int32_t sky_roughness = scene.sky_roughness, cloud = scene.cloud, tint = scene.tint;
  const int8_t *coarse = row.coarse, *other = row.other, *fine = row.fine;
  const int32_t* skyline = scene.skyline.data();
  int32_t *red = row.red.data(), *green = row.green.data(), *blue = row.blue.data();
  for (uint32_t x = 0; x < scene.width; ++x) {
    const int32_t land = std::clamp((y - skyline[x]) * 128, 0, 256);  // soft over two pixels
    const int32_t roughness = sky_roughness + ((ground_roughness - sky_roughness) * land >> 8);
    // Detail comes in patches, as leaves and gravel do.
    const int32_t light = (coarse[x] * cloud + ((fine[x] * roughness) >> 8) * (160 + other[x])) >> 8;
    const int32_t warm = (other[x] * tint) >> 8;
    red[x] = sky.red + ((ground.red - sky.red) * land >> 8) + light + warm;
    green[x] = sky.green + ((ground.green - sky.green) * land >> 8) + light;
    blue[x] = sky.blue + ((ground.blue - sky.blue) * land >> 8) + light - warm;
  }
}

// Squared distance from the centre in the outline's own measure: below kRadius² is inside.
int32_t measure(Outline outline, int32_t u, int32_t v) {
  constexpr int32_t kEdge = kRadius * kRadius;
  switch (outline) {
    case Outline::disc:
      return u * u + v * v;
    case Outline::box:
      return std::max(u * u, v * v);
    case Outline::diamond:
      return (std::abs(u) + std::abs(v)) * (std::abs(u) + std::abs(v)) / 2;
    case Outline::ring:
      break;
  }
  const int32_t square = u * u + v * v;
  return square > kEdge / 2 ? square : 5 * kEdge / 4 - square;  // a hole of half the radius
}

void paint_thing(const Scene& scene, const Thing& thing, int32_t y, Row& row) {
  // The longest reach of an outline is a box's corner: 1.42 radii.
  const int32_t reach = thing.radius * 3 / 2 + 1;
  if (std::abs(y - thing.centre_y) > reach) return;
  const int32_t first = std::max(thing.centre_x - reach, 0);
  const int32_t last = std::min(thing.centre_x + reach, static_cast<int32_t>(scene.width) - 1);
  const int32_t across_u = cosine(thing.turn) * (kRadius / 16) / thing.radius;  // per pixel, in 1/1024
  const int32_t down_u = sine(thing.turn) * (kRadius / 16) / thing.radius;
  const int32_t across_v = across_u * 256 / thing.flatness, down_v = down_u * 256 / thing.flatness;
  const int32_t stripe_u = cosine(thing.stripe_turn) * thing.stripes,
                stripe_v = sine(thing.stripe_turn) * thing.stripes;
  const int32_t dy = y - thing.centre_y;
  for (int32_t x = first; x <= last; ++x) {
    const int32_t dx = x - thing.centre_x;
    const int32_t u = std::clamp((dx * across_u + dy * down_u) >> 10, -2 * kRadius, 2 * kRadius);
    const int32_t v = std::clamp((dy * across_v - dx * down_v) >> 10, -2 * kRadius, 2 * kRadius);
    const int32_t inside = kRadius * kRadius - std::min(measure(thing.outline, u, v), 2 * kRadius * kRadius);
    const int32_t cover = std::clamp((inside >> 6) * thing.radius >> 7, 0, 256);  // soft over about a pixel
    if (cover == 0) continue;
    const int32_t phase = (u * stripe_u + v * stripe_v) >> 15;
    const int32_t stripe = sine(static_cast<uint32_t>(phase)) * thing.stripe_depth / kWaveOne;
    const int32_t shade = -(dy * 40) / thing.radius;
    const int32_t light = stripe + shade + ((row.fine[x] * thing.roughness + row.coarse[x] * 48) >> 8);
    row.red[size_t(x)] += (thing.colour.red + light - row.red[size_t(x)]) * cover >> 8;
    row.green[size_t(x)] += (thing.colour.green + light - row.green[size_t(x)]) * cover >> 8;
    row.blue[size_t(x)] += (thing.colour.blue + light - row.blue[size_t(x)]) * cover >> 8;
  }
}

uint8_t to_byte(int32_t value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

Image paint(const Scene& scene) {
  const NoiseTile& noise = NoiseTile::get();
  Image image{{scene.width, scene.height, 3}, {}};
  image.pixels.resize(size_t{scene.width} * scene.height * 3);
  Row row(scene.width);
  uint8_t* out = image.pixels.data();
  for (uint32_t y = 0; y < scene.height; ++y) {
    row.coarse = noise.coarse(scene.noise_x, scene.noise_y + y);
    row.other = noise.coarse(scene.noise_y + 211, scene.noise_x + y);
    row.fine = noise.fine(scene.noise_x, scene.noise_y + y);
    paint_background(scene, static_cast<int32_t>(y), row);
    for (const Thing& thing : scene.things) paint_thing(scene, thing, static_cast<int32_t>(y), row);
    for (uint32_t x = 0; x < scene.width; ++x, out += 3) {
      out[0] = to_byte(row.red[x]);
      out[1] = to_byte(row.green[x]);
      out[2] = to_byte(row.blue[x]);
    }
  }
  return image;
}

// Sizes as they are in ImageNet: 500 x 375 and its like for the most part; 0.2 Mpixel on average.
struct PhotoShape {
  uint32_t width, height, percent;
};
constexpr std::array<PhotoShape, 12> kShapes = {{{500, 375, 44},
                                                 {375, 500, 16},
                                                 {500, 333, 12},
                                                 {333, 500, 4},
                                                 {500, 500, 4},
                                                 {500, 400, 3},
                                                 {400, 300, 3},
                                                 {320, 240, 4},
                                                 {640, 480, 5},
                                                 {800, 600, 2},
                                                 {1024, 768, 1},
                                                 {0, 0, 2}}};  // any size between 120 and 600

void choose_size(KeyedRandom& random, Scene& scene) {
  uint32_t percent = random.below(100);
  for (const PhotoShape& format : kShapes) {
    if (percent < format.percent) {
      scene.width = format.width > 0 ? format.width : 120 + random.below(481);
      scene.height = format.height > 0 ? format.height : 120 + random.below(481);
      return;
    }
    percent -= format.percent;
  }
}

Colour vary(KeyedRandom& random, const Colour& colour, int32_t by) {
  const int32_t light = random.between(-by, by);
  return {colour.red + light + random.between(-by / 2, by / 2),
          colour.green + light + random.between(-by / 2, by / 2),
          colour.blue + light + random.between(-by / 2, by / 2)};
}

void choose_surroundings(KeyedRandom& random, Scene& scene) {
  constexpr std::array<Colour, 4> kSkies = {
      {{120, 160, 215}, {185, 190, 195}, {215, 170, 130}, {95, 105, 125}}};
  constexpr std::array<Colour, 5> kGrounds = {
      {{85, 110, 60}, {125, 105, 80}, {105, 105, 105}, {160, 145, 115}, {60, 75, 55}}};
  const Colour sky = kSkies[random.below(kSkies.size())], ground = kGrounds[random.below(kGrounds.size())];
  scene.sky_top = vary(random, sky, 30);
  scene.sky_low = vary(random, sky, 40);
  scene.ground_far = vary(random, ground, 25);
  scene.ground_near = vary(random, ground, 30);
  scene.horizon = static_cast<int32_t>(scene.height) * random.between(15, 70) / 100;
  scene.cloud = random.between(60, 150);
  scene.tint = random.between(10, 50);
  // From the flat wall behind a product to foliage: what decides a file's size.
  const int32_t detail = std::max(222 + random.bell(80), 30);
  scene.ground_roughness = detail;
  scene.sky_roughness = detail * random.between(40, 90) / 100;
  scene.noise_x = random.below(NoiseTile::kSide);
  scene.noise_y = random.below(NoiseTile::kSide);
  const int8_t* hills = NoiseTile::get().coarse(scene.noise_y, scene.noise_x);
  const int32_t relief = static_cast<int32_t>(scene.height) * random.between(0, 14);
  for (uint32_t x = 0; x < scene.width; ++x)
    scene.skyline.push_back(scene.horizon + hills[x] * relief / 12800);
}

void place(KeyedRandom& random, const Scene& scene, int32_t smallest_percent, int32_t largest_percent,
           Thing& thing) {
  const auto side = static_cast<int32_t>(std::min(scene.width, scene.height));
  thing.radius = side * random.between(smallest_percent, largest_percent) / 100;
  thing.centre_x = static_cast<int32_t>(scene.width) * random.between(25, 75) / 100;
  thing.centre_y = static_cast<int32_t>(scene.height) * random.between(25, 75) / 100;
  thing.flatness = random.between(150, 256);
  thing.turn = random.below(kWaveSteps);
  thing.roughness = random.between(40, 140);
}

struct Range {
  int32_t least, most;
};
// One draw after the other: the order in which a call's arguments are evaluated is the compiler's choice.
Colour any_colour(KeyedRandom& random, uint32_t hue, Range strengths, Range values) {
  const int32_t strength = random.between(strengths.least, strengths.most);
  const int32_t value = random.between(values.least, values.most);
  return from_hue(hue, strength, value);
}

// A thing of no class: dull, of any outline.
Thing bystander(KeyedRandom& random, const Scene& scene) {
  Thing thing;
  thing.outline = static_cast<Outline>(random.below(kOutlines));
  thing.colour = any_colour(random, random.below(1536), {10, 60}, {60, 200});
  place(random, scene, 5, 15, thing);
  thing.stripe_depth = 0;
  return thing;
}

// The thing the photo is of: colour, outline and stripes are its class's, all else is chance.
Thing subject(KeyedRandom& random, const Scene& scene, const SynthKeys& keys) {
  Thing thing;
  thing.outline = static_cast<Outline>(keys.label % kOutlines);
  const uint32_t hue = static_cast<uint32_t>(uint64_t{keys.label} * 1536 / keys.classes);
  const auto off = static_cast<uint32_t>(random.between(0, 48));
  thing.colour = any_colour(random, (hue + 1536 - 24 + off) % 1536, {110, 200}, {140, 235});
  place(random, scene, 22, 42, thing);
  thing.stripes = 2 + static_cast<int32_t>(keys.label * 3 % 7) * 2;
  thing.stripe_turn = keys.label * 5 % 8 * (kWaveSteps / 16);
  thing.stripe_depth = random.between(25, 45);
  return thing;
}

Chroma choose_chroma(KeyedRandom& random) {
  const uint32_t percent = random.below(200);
  return percent < 130   ? Chroma::s420
         : percent < 188 ? Chroma::s444
         : percent < 197 ? Chroma::s422
                         : Chroma::grey;
}

}  // namespace

Result<std::vector<std::byte>> synth_photo(const SynthKeys& keys) {
  KeyedRandom random(keys.seed, SynthKind::photos, keys.index, keys.classes);
  Scene scene;
  choose_size(random, scene);
  choose_surroundings(random, scene);
  for (uint32_t count = random.below(4); count > 0; --count) scene.things.push_back(bystander(random, scene));
  scene.things.push_back(subject(random, scene, keys));
  const int quality = random.between(85, 95);
  const Chroma chroma = choose_chroma(random);
  return encode_jpeg(paint(scene), quality, chroma);
}

}  // namespace packtrain
