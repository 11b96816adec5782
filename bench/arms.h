// SPDX-License-Identifier: Apache-2.0
// What the programs behind scripts/bench share: arms that are measured once in every round, in
// random order, and printed as one JSON object. An arm that errs ends the whole run: a partial
// table would lie.
#pragma once

#include <errno.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace agbox::bench {

using Measured = std::map<std::string, double>;  // by metric

struct Arm {
  std::string name;
  std::function<Measured()> measure;
};

[[noreturn]] inline void give_up(const std::string& why) {
  std::cerr << program_invocation_short_name << ": " << why << "\n";
  std::exit(1);
}

inline void print(const Measured& measured) {
  std::string_view separator;
  for (const auto& [metric, value] : measured) {
    std::cout << separator << '"' << metric << R"(": )" << value;
    separator = ", ";
  }
}

inline void run(std::string_view benchmark, int rounds, std::vector<Arm> arms) {
  std::mt19937 random(std::random_device{}());
  for (const Arm& arm : arms) arm.measure();  // once unmeasured
  std::cout << R"({"benchmark": ")" << benchmark << R"(", "rounds": [)";
  for (int round = 0; round < rounds; ++round) {
    std::ranges::shuffle(arms, random);
    std::cout << (round == 0 ? "\n{" : ",\n{");
    std::string_view separator;
    for (const Arm& arm : arms) {
      std::cout << separator << '"' << arm.name << R"(": {)";
      print(arm.measure());
      std::cout << "}";
      separator = ", ";
    }
    std::cout << "}";
  }
  std::cout << "\n]}\n";
}

}  // namespace agbox::bench
