#include "eval/filler_text.h"

#include <string_view>

#include <fmt/format.h>

#include "eval/draws.h"

namespace dunlin::eval {
namespace {

constexpr std::string_view kAdjectives[] = {
    "old",   "quiet", "narrow", "bright", "wooden", "distant", "muddy",  "green",
    "broad", "low",   "windy",  "grey",   "busy",   "empty",   "gentle", "steep"};
constexpr std::string_view kPlaces[] = {
    "harbour", "meadow", "bridge",   "market", "orchard", "river bank", "station", "lighthouse",
    "village", "valley", "workshop", "garden", "library", "shore",      "mill",    "square"};
constexpr std::string_view kPeople[] = {
    "The baker",     "A fisherman", "The teacher",  "A neighbour", "The ferryman", "A visitor",
    "The carpenter", "A painter",   "The gardener", "A traveller", "The postman",  "A student"};
constexpr std::string_view kActions[] = {
    "walked past", "looked at", "came back to", "spoke about",   "sketched",  "left",
    "remembered",  "cycled to", "waited near",  "told us about", "rested by", "photographed"};
constexpr std::string_view kTimes[] = {
    "in the morning",    "before noon",       "after the rain",  "in early spring",
    "towards evening",   "on a calm day",     "during the week", "in the long summer",
    "while it was cold", "when the bell rang"};
constexpr std::string_view kWeather[] = {
    "The wind turned to the west", "Clouds drifted over the hills", "The tide went out slowly",
    "Fog lay over the fields",     "The sun came through at last",  "A light rain began to fall",
    "Leaves gathered by the road", "The snow was melting",          "It stayed dry all day"};
constexpr std::string_view kThings[] = {"boats",    "sheep",    "gulls",   "carts",
                                        "children", "lamps",    "stones",  "baskets",
                                        "flowers",  "swallows", "barrels", "nets"};
constexpr std::string_view kStates[] = {
    "were lined up",      "could be seen", "moved without hurry", "stood in the shade",
    "were counted twice", "made no sound", "caught the light",    "were brought inside"};

}  // namespace

std::string filler_sentence(std::uint64_t seed, std::uint32_t stream, std::uint64_t idx) {
  Draws draws(seed, stream, idx);
  switch (draws.below(4)) {
    case 0:
      return fmt::format("{} {} the {} {} {}.", draws.one_of(kPeople), draws.one_of(kActions),
                         draws.one_of(kAdjectives), draws.one_of(kPlaces), draws.one_of(kTimes));
    case 1:
      return fmt::format("{}, and the {} {} near the {}.", draws.one_of(kWeather),
                         draws.one_of(kThings), draws.one_of(kStates), draws.one_of(kPlaces));
    case 2:
      return fmt::format("Near the {} {}, the {} {} {}.", draws.one_of(kAdjectives),
                         draws.one_of(kPlaces), draws.one_of(kThings), draws.one_of(kStates),
                         draws.one_of(kTimes));
    default:
      return fmt::format("{} {} the {}, where the {} {} {}.", draws.one_of(kPeople),
                         draws.one_of(kActions), draws.one_of(kPlaces), draws.one_of(kAdjectives),
                         draws.one_of(kThings), draws.one_of(kStates));
  }
}

}  // namespace dunlin::eval
