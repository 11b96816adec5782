// SPDX-License-Identifier: Apache-2.0
#include "unit/control/control_fixture.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <regex>

#include "base/failpoint.h"
#include "model/object_names.h"
#include "unit/control/docker_engine_options.h"
#include "unit/model/flipped_tables.h"

namespace agbox {

namespace fs = std::filesystem;
using testing::IsEmpty;

namespace {

// Long enough for a machine with other work to do; after a wrong verdict of a flipped table waiting
// in vain is expected.
std::chrono::steady_clock::time_point end_of_patience() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(flip::has_misled() ? 1 : 120);
}

const std::string kForeign = "foreign-";

}  // namespace

ControlTest::ControlTest()
    : docker_(loop_.io()), guests_(loop_.io().get_executor(), docker_), isolation_(loop_.io()) {
  set_log_level(LogLevel::Error);
  disarm();
  std::ofstream(temp_directory_.path() / "agbox-guest") << "a guest program";
  engine().add_image("busybox");
}

ControlTest::~ControlTest() {
  disarm();
  if (is_running()) stop();
  guests_.end_all();
  run_until([&] { return guests_.alive() == 0; });
  set_log_level(LogLevel::Info);
}

StoreOptions ControlTest::store_options() {
  auto post = [this, alive = std::weak_ptr(is_alive_)](std::function<void()> callback) {
    loop_.post([this, alive, callback = std::move(callback)] {
      if (alive.expired()) return;
      if (holds_store_) return held_.push_back(callback);
      callback();
    });
  };
  return {.path = temp_directory_.path() / "data" / "ids.db",
          .post = std::move(post),
          .clock = clock_,
          .log = {},
          .ballast_bytes = ballast_bytes_,
          .testing = {.vfs = store_vfs_}};
}

void ControlTest::start() {
  is_alive_ = std::make_shared<bool>(true);
  auto store = Store::open(store_options());
  ASSERT_TRUE(store.has_value()) << store.error().message();
  store_ = std::move(*store);
  instance_ = store_->instance_id();
  fs::create_directories(temp_directory_.path() / state_root_);
  // On the loop itself: once it is idle, nothing is in progress.
  DockerEngineOptions its_engine =
      docker_engine_options(docker_.socket_path(), instance_, address_pool_);
  its_engine.patience = patience_;
  docker_engine_ = std::make_unique<DockerEngine>(
      loop_.io().get_executor(), loop_.io().get_executor(), std::move(its_engine), Logger());
  ControlOptions options{.lock_file = lock_file_,
                         .ttls = ttls_,
                         .pauses_unisolated = pauses_unisolated_,
                         .first_answer_timeout = first_answer_timeout_,
                         .created_with = {}};
  LocalPlaceOptions its_place{.instance_id = instance_,
                              .state_root = temp_directory_.path() / state_root_,
                              .guest_program = temp_directory_.path() / "agbox-guest",
                              .output_root = temp_directory_.path() / "execs",
                              .home = home_,
                              .resolver_files = resolver_files_};
  its_place.guest_limits.guest_uid = ::geteuid();
  its_place.guest_limits.penalty =
      std::chrono::milliseconds(10);  // guests of tests come back often
  options.created_with.set_state_root(its_place.state_root.string());
  options.created_with.set_exec_output_root(its_place.output_root.string());
  options.created_with.set_exec_output_template(exec_output_template_);
  options.created_with.set_exec_output_max_bytes(exec_output_max_);
  options.created_with.add_dns(resolver_);
  options.created_with.set_host_uid(1234);
  options.created_with.set_host_gid(5678);
  auto place = LocalPlace::create(loop_.io().get_executor(), loop_.io().get_executor(), isolation_,
                                  std::move(its_place), Logger());
  ASSERT_TRUE(place.has_value()) << place.error().message();
  place_ = std::move(*place);
  auto plane = ControlPlane::start(loop_, *store_, clock_, *docker_engine_, *place_,
                                   std::move(options), Logger());
  ASSERT_TRUE(plane.has_value()) << plane.error().message();
  plane_ = std::move(*plane);
}

void ControlTest::stop() {
  const auto has_ended = std::make_shared<bool>(false);  // may outlive a wait that fails
  plane_->shut_down([has_ended] { *has_ended = true; });
  if (holds_store_) {  // all operations are cancelled before it goes on
    run_until_idle();
    release_store();
  }
  run_until([&] { return *has_ended; });
  is_alive_.reset();
  plane_.reset();
  place_.reset();
  docker_engine_.reset();
  store_.reset();
}

Result<v1::DiagnoseResponse> ControlTest::diagnose(const std::vector<std::string>& images) {
  std::optional<Result<v1::DiagnoseResponse>> answer;
  plane_->diagnose(images, [&](Result<v1::DiagnoseResponse> told) { answer = std::move(told); });
  run_until([&] { return answer.has_value(); });
  return std::move(*answer);
}

void ControlTest::crash() {
  settle();
  const fs::path data = temp_directory_.path() / "data";
  const fs::path kept = temp_directory_.path() / "data-as-it-was";
  fs::copy(data, kept, fs::copy_options::recursive);
  stop();
  fs::remove_all(data);
  fs::rename(kept, data);
}

void ControlTest::run_until(const std::function<bool()>& holds) {
  auto give_up = end_of_patience();
  while (!holds()) {
    if (loop_.io().run_one_until(give_up) == 0) throw std::runtime_error("waited in vain");
    give_up = std::min(give_up, end_of_patience());
  }
}

void ControlTest::run_until_idle() {
  while (loop_.io().poll() > 0) {
  }
}

void ControlTest::release_store() {
  holds_store_ = false;
  for (const auto& callback : std::exchange(held_, {})) callback();
}

void ControlTest::settle() {
  bool is_stored = false;
  store_->append({}, [&](const Result<Committed>&) { is_stored = true; });
  run_until([&] { return is_stored; });
}

SandboxSpec ControlTest::spec(const LabelMap& labels, const std::string& image) {
  v1::CreateSpec wanted;
  wanted.set_image(image);
  for (const auto& [key, value] : labels) (*wanted.mutable_labels())[key] = value;
  return parse_create_spec(std::move(wanted)).value();
}

SandboxSpec ControlTest::spec_with_copy(const std::string& target) {
  const fs::path source = temp_directory_.path() / "copied.txt";
  std::ofstream(source) << "copied\n";
  v1::CreateSpec wanted;
  wanted.set_image("busybox");
  v1::CopySpec& copy = *wanted.add_copies();
  copy.set_source(source);
  copy.set_target(target);
  return parse_create_spec(std::move(wanted)).value();
}

Result<v1::SandboxHandle> ControlTest::create(const std::string& id, SandboxSpec wanted) {
  wait_for_engine();
  std::optional<Result<v1::SandboxHandle>> reply;
  directory().create(std::move(wanted), id, [&](auto result) { reply = std::move(result); });
  run_until([&] { return reply.has_value(); });
  return *reply;
}

void ControlTest::create_ready(const std::string& id, SandboxSpec wanted) {
  const auto created = create(id, std::move(wanted));
  ASSERT_TRUE(created.has_value()) << created.error().message();
  wait_for_state(id, v1::SANDBOX_STATE_READY);
}

Result<> ControlTest::answer_of(const std::function<void(Directory::Reply<void>)>& call) {
  std::optional<Result<>> answer;
  call([&](auto result) { answer = std::move(result); });
  run_until([&] { return answer.has_value(); });
  return *answer;
}

Result<> ControlTest::remove(const std::string& id) {
  return answer_of([&](auto reply) { directory().remove(id, reply); });
}

Result<> ControlTest::ask_stop(const std::string& id) {
  return answer_of([&](auto reply) { directory().stop(id, reply); });
}

Result<> ControlTest::ask_resume(const std::string& id) {
  return answer_of([&](auto reply) { directory().resume(id, reply); });
}

void ControlTest::stop_sandbox(const std::string& id) {
  const auto accepted = ask_stop(id);
  ASSERT_TRUE(accepted.has_value()) << accepted.error().message();
  wait_for_state(id, v1::SANDBOX_STATE_STOPPED);
}

void ControlTest::resume_sandbox(const std::string& id) {
  const auto accepted = ask_resume(id);
  ASSERT_TRUE(accepted.has_value()) << accepted.error().message();
  wait_for_state(id, v1::SANDBOX_STATE_READY);
}

void ControlTest::wait_for_state(const std::string& id, v1::SandboxState wanted) {
  run_until([&] { return state(id) == wanted; });
}

std::vector<std::string> ControlTest::listed(const v1::ListSandboxesRequest& request) {
  std::vector<std::string> ids;
  for (const auto& sandbox : directory().list(request).value().sandboxes()) {
    ids.push_back(sandbox.sandbox_id());
  }
  return ids;
}

std::vector<ControlTest::Seen> ControlTest::events(const std::string& id, std::uint64_t from,
                                                   bool with_snapshot) {
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id(id);
  request.set_from_sequence(from);
  request.set_include_current_snapshot(with_snapshot);
  const std::uint64_t newest = handle(id).last_event_sequence();
  // With a snapshot the newest comes first, and comes even where the anchor is the newest.
  std::size_t expected = newest - from;
  if (with_snapshot && from == newest) expected = 1;
  auto subscription = directory().subscribe(request, [] {}).value();
  std::vector<Seen> seen;
  run_until([&] {
    while (true) {
      const auto next = subscription->next();
      const auto* item = std::get_if<EventSubscription::Item>(&next);
      if (item == nullptr) return seen.size() >= expected;
      seen.push_back({.event = item->event->event,
                      .bytes = item->event->bytes,
                      .is_replay = item->is_replay,
                      .is_snapshot = item->is_snapshot});
    }
  });
  return seen;
}

std::vector<v1::EventType> ControlTest::event_types(const std::string& id) {
  std::vector<v1::EventType> types;
  for (const Seen& seen : events(id)) types.push_back(seen.event.event_type());
  return types;
}

void ControlTest::wait_held_at(const std::string& failpoint) {
  run_until([&] { return failpoint::passages(failpoint) > 0; });
  settle();
}

void ControlTest::create_held_at(const std::string& id, const std::string& failpoint) {
  ASSERT_TRUE(failpoint::arm(failpoint + "=hold"));
  const auto created = create(id, spec_with_copy());
  ASSERT_TRUE(created.has_value()) << created.error().message();
  wait_held_at(failpoint);
}

void ControlTest::remove_held_at(const std::string& id, const std::string& failpoint) {
  ASSERT_TRUE(failpoint::arm(failpoint + "=hold"));
  ASSERT_TRUE(remove(id).has_value());
  wait_held_at(failpoint);
}

void ControlTest::disarm() {
  failpoint::arm("");
}

namespace {

bool begins_like_one_of(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](const auto& prefix) { return name.starts_with(prefix); });
}

// Of the steps that are written step("name", ...) in the operations.
std::vector<std::string> failpoints_in_the_source(const std::vector<std::string>& prefixes) {
  const std::regex pattern(R"re(\bstep\(\s*"([a-z_.]+)",)re");
  std::vector<std::string> names;
  for (const char* file :
       {"control/sandbox/operations/materialize.cpp", "control/sandbox/operations/resume.cpp",
        "control/sandbox/operations/start_primary.cpp", "control/sandbox/operations/stop.cpp",
        "control/sandbox/operations/teardown.cpp", "engine/docker/workload/workloads.cpp"}) {
    std::ifstream in(fs::path(AGBOX_SOURCES) / file);
    const std::string source{std::istreambuf_iterator<char>(in), {}};
    for (std::sregex_iterator found(source.begin(), source.end(), pattern), end; found != end;
         ++found) {
      const std::string step = (*found)[1];
      if (!begins_like_one_of(step, prefixes)) continue;
      names.push_back(step + ".before");
      names.push_back(step + ".after");
    }
  }
  EXPECT_FALSE(names.empty()) << "no step is found in " << AGBOX_SOURCES;
  return names;
}

}  // namespace

std::vector<std::string> ControlTest::failpoints_of_a_lifecycle(
    const std::vector<std::string>& prefixes) {
  occupy_all_subnets_but_the_last();
  failpoint::record_passages(true);
  create_ready("life-of-one", spec_with_copy());
  stop_sandbox("life-of-one");
  start_by_hand("life-of-one");
  resume_sandbox("life-of-one");
  stop_sandbox("life-of-one");
  docker().reply("POST /containers/*/start", 500, R"({"message":"no"})", 1);
  EXPECT_TRUE(ask_resume("life-of-one").has_value());
  wait_for_state("life-of-one", v1::SANDBOX_STATE_FAILED);
  EXPECT_TRUE(remove("life-of-one").has_value());
  wait_for_state("life-of-one", v1::SANDBOX_STATE_DELETED);
  failpoint::record_passages(false);
  std::vector<std::string> names;
  for (const std::string& name : failpoint::recorded_passages()) {
    if (begins_like_one_of(name, prefixes)) names.push_back(name);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(failpoints_in_the_source(prefixes)));
  return names;
}

std::vector<std::string> ControlTest::link_directories() const {
  std::vector<std::string> names;
  if (!fs::exists(link_root())) return names;
  for (const auto& entry : fs::directory_iterator(link_root())) {
    names.push_back(entry.path().filename());
  }
  return names;
}

void ControlTest::occupy_all_subnets_but_the_last() {
  for (int i = 0; i < 15; ++i) {
    const std::string name = kForeign + std::to_string(i);
    const std::string subnet = "10.99.0." + std::to_string(16 * i) + "/28";
    engine().answer(
        {.method = "POST",
         .path = "/networks/create",
         .query = {},
         .body = R"({"Name":")" + name + R"(","IPAM":{"Config":[{"Subnet":")" + subnet + R"("}]}})",
         .registry_auth = {}});
  }
}

std::vector<std::string> ControlTest::network_names() {
  std::vector<std::string> names = docker_.network_names();
  std::erase_if(names, [](const std::string& name) { return name.starts_with(kForeign); });
  return names;
}

void ControlTest::expect_nothing_left() {
  EXPECT_THAT(docker_.container_names(), IsEmpty());
  EXPECT_THAT(network_names(), IsEmpty());
  EXPECT_THAT(link_directories(), IsEmpty());
}

void ControlTest::start_by_hand(const std::string& id) {
  const auto started = engine().answer({.method = "POST",
                                        .path = "/containers/" + primary(id).id + "/start",
                                        .query = {},
                                        .body = {},
                                        .registry_auth = {}});
  ASSERT_EQ(started.status, 204);
}

const fake::Container& ControlTest::primary(const std::string& id) {
  return *engine().find_container(primary_container_name(id));
}

}  // namespace agbox
