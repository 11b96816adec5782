// SPDX-License-Identifier: Apache-2.0
#include "unit/model/bad_requests.h"

#include <functional>
#include <limits>
#include <random>

#include "model/spec/maxima.h"

namespace agbox {
namespace {

class Faults {
 public:
  explicit Faults(std::uint32_t seed) : random_(seed) {}

  BadRequest next() {
    if (below(3) == 0) return yaml_fault();
    BadRequest bad;
    bad.request.set_sandbox_id("bad-request");
    v1::CreateSpec& spec = *bad.request.mutable_create_spec();
    fill_good(spec);
    bad.names = spec_fault(spec);
    return bad;
  }

 private:
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(below(choices.size())));
  }
  std::string one_of(std::initializer_list<const char*> choices) {
    return one_of<const char*>(choices);
  }

  std::string word() {
    std::string text;
    for (std::size_t i = 0, end = 1 + below(12); i < end; ++i) {
      text += static_cast<char>('a' + below(26));
    }
    return text;
  }
  std::string path() {
    std::string text;
    for (std::size_t i = 0, end = 1 + below(5); i < end; ++i) text += "/" + word();
    return text;
  }
  // `text` with `part` somewhere in it.
  std::string with(std::string text, const std::string& part) {
    return text.insert(below(text.size() + 1), part);
  }
  std::string with_nul(const std::string& text) { return with(text, std::string(1, '\0')); }
  // Characters of two to four bytes, joined ones, others that look like dots and slashes.
  std::string odd_word() {
    std::string text;
    for (std::size_t i = 0, end = 1 + below(6); i < end; ++i) {
      text += one_of({"\u00e9", "\u2024\u2024", "\uff0f", "\u2215", "\U0001f4a9", "\u200d",
                      "\ufeff", "\u202e", "e\u0301", "\u0130"});
    }
    return text;
  }

  void fill_good(v1::CreateSpec& spec) {
    spec.set_image("busybox:" + word());
    for (std::size_t i = below(3); i > 0; --i) (*spec.mutable_labels())[word()] = odd_word();
    for (std::size_t i = below(3); i > 0; --i) (*spec.mutable_envs())["E" + word()] = odd_word();
    for (std::size_t i = below(3); i > 0; --i) spec.add_command(odd_word());
    if (below(2) == 0) spec.set_cpu_limit("0.5");
    if (below(2) == 0) spec.set_memory_limit("64m");
  }
  v1::CompanionContainerSpec& add_companion(v1::CreateSpec& spec) {
    auto& lists = one_of<google::protobuf::RepeatedPtrField<v1::CompanionContainerSpec>*>(
        {spec.mutable_companion_containers(), spec.mutable_required_services(),
         spec.mutable_optional_services()})[0];
    v1::CompanionContainerSpec& companion = *lists.Add();
    companion.set_name(word() + std::to_string(below(1'000'000)));
    companion.set_image("db:1");
    return companion;
  }

  std::string bad_path(bool is_target) {
    switch (below(is_target ? 7 : 6)) {
      case 0:
        return "";
      case 1:
        return path().substr(1);  // relative
      case 2:
        return "~" + word() + path();
      case 3:
        return path() + "/.." + (below(2) == 0 ? path() : "");
      case 4:
        return "/" + with_nul(path());
      case 5:
        return "/" + std::string(4096 + below(100'000), 'p');
      default:
        return one_of({"/", "//", "/.", "/proc", "/proc/self", "/sys/", "/dev/null", "/dev",
                       "/.agbox-link", "/.agbox-", "/var/log/agents-sandbox/x", "/var", "/etc",
                       "/etc/hosts", "//etc/./resolv.conf", "/etc/hostname/"});
    }
  }
  std::string mount_fault(v1::CreateSpec& spec) {
    v1::MountSpec& mount = *spec.add_mounts();
    mount.set_source(path());
    mount.set_target(path());
    const bool is_target = below(2) == 0;
    *(is_target ? mount.mutable_target() : mount.mutable_source()) = bad_path(is_target);
    return "";  // the field, or the path itself
  }
  std::string copy_fault(v1::CreateSpec& spec) {
    v1::CopySpec& copy = *spec.add_copies();
    copy.set_source(path());
    copy.set_target(path());
    switch (below(4)) {
      case 0:
        copy.set_source(bad_path(false));
        return "";
      case 1:
        copy.set_target(bad_path(true));
        return "";
      case 2:
        copy.add_exclude_patterns(with_nul(word()));
        return "exclude_patterns";
      default:
        copy.set_source(std::string(1 + below(4), '/'));
        return "root directory";
    }
  }
  std::string conflict(v1::CreateSpec& spec) {
    const std::string target = path();
    for (const std::string& spelling :
         {target, one_of<std::string>({target + "/", "/" + target, "/." + target, target})}) {
      if (below(2) == 0) {
        spec.add_mounts()->set_source(path());
        spec.mutable_mounts()->rbegin()->set_target(spelling);
      } else {
        spec.add_copies()->set_source(path());
        spec.mutable_copies()->rbegin()->set_target(spelling);
      }
    }
    return "conflicting target " + target;
  }
  std::string port_fault(v1::CreateSpec& spec) {
    v1::PortMapping& port = *spec.add_ports();
    port.set_container_port(static_cast<std::uint32_t>(1 + below(65535)));
    port.set_host_port(static_cast<std::uint32_t>(1 + below(65535)));
    const auto bad = below(2) == 0 ? 0U : static_cast<std::uint32_t>(65536 + below(1U << 30U));
    switch (below(4)) {
      case 0:
        port.set_container_port(bad);
        return "container_port";
      case 1:
        port.set_host_port(bad);
        return "host_port";
      case 2:
        port.set_protocol(
            static_cast<v1::PortProtocol>(below(2) == 0 ? -1 : static_cast<int>(3 + below(1000))));
        return "protocol";
      default:
        *spec.add_ports() = port;
        return "duplicate host_port";
    }
  }
  std::string companion_fault(v1::CreateSpec& spec) {
    v1::CompanionContainerSpec& companion = add_companion(spec);
    const auto probe = [&]() -> v1::HealthcheckConfig& {
      companion.mutable_healthcheck()->add_test("CMD");
      companion.mutable_healthcheck()->add_test("x");
      return *companion.mutable_healthcheck();
    };
    switch (below(19)) {
      case 0:
        companion.clear_name();
        return "name is required";
      case 1:
        companion.set_name(with(word(), one_of({".", "/", " ", "\u00e9"})));
        return "name";
      case 2:
        companion.set_name(std::string(64 + below(10'000), 'n'));
        return "name";
      case 3:
        companion.clear_image();
        return "image is required";
      case 4:
        companion.set_image("Not An Image");
        return "image";
      case 5:
        *spec.add_companion_containers() = companion;
        return "duplicate";
      case 6:
        companion.add_post_start_on_primary(word());
        return "post_start_on_primary";
      case 7:
        companion.mutable_healthcheck();
        return "healthcheck.test";
      case 8:
        probe().set_test(0, word());
        return "healthcheck.test[0]";
      case 9:
        probe().mutable_interval()->set_seconds(-1 - static_cast<std::int64_t>(below(100)));
        return "interval";
      case 10:
        probe().mutable_timeout()->set_nanos(static_cast<std::int32_t>(1 + below(999'999)));
        return "timeout";
      case 11:
        companion.add_command(below(2) == 0 ? "" : with_nul(word()));
        return "command[";
      case 12:
        companion.set_memory_limit(bad_size());
        return "memory_limit";
      case 13: {
        std::string& name = *companion.mutable_name();
        *spec.add_required_services() = companion;
        name[0] = static_cast<char>(name[0] - 'a' + 'A');
        return "duplicate";
      }
      case 14:
        probe();
        companion.add_post_start_on_primary(word());
        *spec.add_optional_services() = companion;
        spec.mutable_optional_services()->rbegin()->set_name("other");
        return "an optional service must not have post_start_on_primary";
      case 15:
        probe().set_test(0, "NONE");
        return "healthcheck.test must not include extra args";
      case 16:
        probe().mutable_test()->RemoveLast();
        return "healthcheck.test for CMD must include a command";
      case 17:
        while (spec.required_services_size() <= 12) {
          spec.add_required_services()->set_name("s" +
                                                 std::to_string(spec.required_services_size()));
        }
        return "at most 12";
      default:
        (*companion.mutable_envs())[one_of({"", "=", "a=b"})] = "";
        return "envs";
    }
  }
  std::string bad_size() {
    return one_of<std::string>({"-" + std::to_string(1 + below(100)), "0", "x", "1 x", "--1", "1e",
                                "nan", "inf", "9999999999p", "1_", word(), odd_word(),
                                std::string(65 + below(10'000), '9')});
  }
  std::string long_list(v1::CreateSpec& spec) {
    const std::size_t extra = 1 + below(1000);
    switch (below(6)) {
      case 0:
        for (std::size_t i = 0; i < maxima::kMounts + extra; ++i) spec.add_mounts();
        return "mounts";
      case 1:
        for (std::size_t i = 0; i < maxima::kCopies + extra; ++i) spec.add_copies();
        return "copies";
      case 2:
        for (std::size_t i = 0; i < maxima::kPorts + extra; ++i) spec.add_ports();
        return "ports";
      case 3:
        for (std::size_t i = 0; i < 12 + extra; ++i) add_companion(spec);
        return "companion_containers";
      case 4:
        for (std::size_t i = 0; i < maxima::kLabels + extra; ++i) {
          (*spec.mutable_labels())[std::to_string(i)] = "";
        }
        return "labels";
      default:
        for (std::size_t i = 0; i < maxima::kEnvs + extra; ++i) {
          (*spec.mutable_envs())[std::to_string(i)] = "";
        }
        return "envs";
    }
  }
  std::string spec_fault(v1::CreateSpec& spec) {
    switch (below(21)) {
      case 0:
        spec.clear_image();
        return "image is required";
      case 1:
        spec.set_image(one_of<std::string>({with(spec.image(), " "), "-" + spec.image(), "a:b:c@",
                                            odd_word(), std::string(2000, 'i')}));
        return "image";
      case 2:
        spec.mutable_idle_ttl()->set_seconds(
            one_of({std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
                    std::numeric_limits<std::int64_t>::max(), std::int64_t{315'576'000'001}}));
        return "idle_ttl";
      case 3:
        spec.mutable_idle_ttl()->set_nanos(
            one_of({-1, std::numeric_limits<std::int32_t>::min(), 1, 1'000'000'000}));
        return "idle_ttl";
      case 4:
        spec.set_gpus(one_of<std::string>({word() + "0", "ALL", "all ", "-1"}));
        return "gpus";
      case 5:
        (*spec.mutable_envs())[one_of({"HOST_UID", "HOST_GID", "AGENTS_SANDBOX_X"})] = "0";
        return "envs.";
      case 6:
        (*spec.mutable_envs())[one_of({"", "=", "a=b"})] = word();
        return "envs";
      case 7:
        (*spec.mutable_envs())[word()] = with_nul(word());
        return "envs.";
      case 8:
        (*spec.mutable_envs())[with_nul(word())] = word();
        return "envs";
      case 9:
        (*spec.mutable_labels())[below(2) == 0 ? ""
                                               : with(word(), one_of({"\n", "\x1b", "\x7f"}))] =
            word();
        return "labels";
      case 10:
        (*spec.mutable_labels())[std::string(257, 'k')] = "";
        return "label";
      case 11:
        (*spec.mutable_labels())[word()] = std::string(4097, 'v');
        return "label";
      case 12:
        spec.add_command(below(2) == 0 ? "" : with_nul(word()));
        return "command[";
      case 13:
        spec.set_cpu_limit(bad_size());
        return "cpu_limit";
      case 14:
        spec.set_memory_limit(bad_size());
        return "memory_limit";
      case 15:
        spec.set_disk_limit(bad_size());
        return "disk_limit";
      case 16:
        spec.add_builtin_tools(one_of<std::string>({"", word() + "0", "Git", "git "}));
        return "builtin resource";
      case 17:
        return below(2) == 0 ? port_fault(spec) : conflict(spec);
      case 18:
        return below(2) == 0 ? mount_fault(spec) : copy_fault(spec);
      case 19:
        spec.mutable_lease_ttl()->set_nanos(
            one_of({-1, std::numeric_limits<std::int32_t>::min(), 0, 999'999'999, 1'000'000'000}));
        return "lease_ttl";
      default:
        return below(3) == 0 ? long_list(spec) : companion_fault(spec);
    }
  }

  // A fault that only a file can have; line 1 is good.
  BadRequest yaml_fault() {
    std::string fault;
    switch (below(16)) {
      case 0:
        fault = word() + "0: 1";
        break;  // unknown key
      case 1:
        fault = "ports: [{container_port: -" + std::to_string(1 + below(99999)) + "}]";
        break;
      case 2:
        fault = "ports: [{container_port: 4294967296}]";
        break;
      case 3:
        fault = "ports: [{protocol: " + word() + "0}]";
        break;
      case 4:
        fault = "mounts: [{writable: " + word() + "0}]";
        break;
      case 5:
        fault = "mounts: {" + word() + ": 1}";
        break;
      case 6:
        fault = "idle_ttl: " + one_of({"1", "-", "1d", "one", "1h1", "1.5.5s"});
        break;
      case 7:
        fault = "command: []";
        break;
      case 8:
        fault = "labels: [a, b]";
        break;
      case 9:
        fault = "labels: {a: 1, a: 2}";
        break;
      case 10:
        fault = "labels: " + std::string(64 + below(5000), '[');
        break;
      case 11:
        fault =
            std::string("labels: {a: \"") + one_of({"\xff", "\xc0\xaf", "\xed\xa0\x80"}) + "\"}";
        break;
      case 12:
        fault = "labels:\n\t- x";
        break;
      case 13:
        fault = "gpus: &a [*a]";
        break;
      case 14:
        fault = with_nul("labels: {a: b}");
        break;
      default:
        fault = "companion_containers: [" + word() + "]";
        break;
    }
    BadRequest bad;
    bad.request.set_sandbox_id("bad-request");
    bad.request.set_config_yaml("image: busybox\n" + fault);
    bad.names = "invalid config_yaml: line ";
    return bad;
  }

  std::mt19937 random_;
};

}  // namespace

std::vector<BadRequest> bad_requests(std::uint32_t seed, std::size_t count) {
  Faults faults(seed);
  std::vector<BadRequest> requests;
  requests.reserve(count);
  while (requests.size() < count) requests.push_back(faults.next());
  return requests;
}

}  // namespace agbox
