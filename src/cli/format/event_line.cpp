// SPDX-License-Identifier: Apache-2.0
#include "cli/format/event_line.h"

#include <google/protobuf/util/time_util.h>

#include <string_view>

#include "cli/format/printable.h"
#include "cli/format/sandbox_text.h"

namespace agbox::cli {

namespace {

constexpr std::size_t kSandboxWidth = 36;  // of an ID that the daemon generated
constexpr std::size_t kSequenceWidth = 4;
constexpr std::size_t kTimeWidth = sizeof("2006-01-02T15:04:05.000Z") - 1;
constexpr std::size_t kTypeWidth = sizeof("COMPANION_CONTAINER_FAILED") - 1;
constexpr std::size_t kStateWidth = sizeof("Deleting") - 1;

std::string padding(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ');
}

std::string left(const std::string& text, std::size_t width) {
  return text + padding(text, width) + "  ";
}

std::string right(const std::string& text, std::size_t width) {
  return padding(text, width) + text + "  ";
}

std::string time_text(google::protobuf::Timestamp time) {
  time.set_nanos(time.nanos() / 1'000'000 * 1'000'000);
  std::string text = google::protobuf::util::TimeUtil::ToString(time);
  // A whole second is written without a fraction.
  if (!text.contains('.') && text.ends_with('Z')) text.insert(text.size() - 1, ".000");
  return text;
}

std::string type_text(v1::EventType type) {
  const std::string& name = v1::EventType_Name(type);
  return name.empty() ? "EVENT " + std::to_string(type) : name;
}

class Details {
 public:
  void add(std::string_view text) {
    if (!text_.empty() && !text.empty()) text_ += ' ';
    text_ += text;
  }
  void add(std::string_view name, std::string_view value) {
    if (!value.empty()) add(std::string(name) + "=" + std::string(value));
  }
  void add_error(const std::string& code, const std::string& message) {
    add(error_text(code, message));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string details_text(const v1::SandboxEvent& event) {
  Details out;
  switch (event.details_case()) {
    case v1::SandboxEvent::kSandboxPhase:
      out.add(event.sandbox_phase().phase());
      out.add("reason", event.sandbox_phase().reason());
      out.add_error(event.sandbox_phase().error_code(), event.sandbox_phase().error_message());
      break;
    case v1::SandboxEvent::kExec: {
      const v1::ExecEventDetails& exec = event.exec();
      out.add("exec", exec.exec_id());
      const bool has_exited = exec.exec_state() == v1::EXEC_STATE_FINISHED ||
                              exec.exec_state() == v1::EXEC_STATE_FAILED;
      if (has_exited) out.add("exit_code", std::to_string(exec.exit_code()));
      out.add_error(exec.error_code(), exec.error_message());
      break;
    }
    case v1::SandboxEvent::kCompanionContainer:
      out.add("name", event.companion_container().name());
      out.add_error(event.companion_container().error_code(),
                    event.companion_container().error_message());
      break;
    case v1::SandboxEvent::DETAILS_NOT_SET:
      break;
  }
  return printable_line(out.text());
}

}  // namespace

std::string event_line(const v1::SandboxEvent& event) {
  std::string line = right(std::to_string(event.sequence()), kSequenceWidth) +
                     left(time_text(event.occurred_at()), kTimeWidth) +
                     left(type_text(event.event_type()), kTypeWidth) +
                     left(state_text(event.sandbox_state()), kStateWidth) + details_text(event);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string event_line_with_sandbox(const v1::SandboxEvent& event) {
  return left(printable_line(event.sandbox_id()), kSandboxWidth) + event_line(event);
}

}  // namespace agbox::cli
