// SPDX-License-Identifier: Apache-2.0
#include "rpc/sandbox_service.h"

#include <google/protobuf/descriptor.h>

#include <string_view>
#include <utility>
#include <vector>

#include "agbox/v1/service.grpc.pb.h"
#include "base/check.h"
#include "base/result.h"
#include "execlog/output_loop.h"
#include "model/exec/exec_request.h"
#include "model/reasons.h"
#include "model/spec/sandbox_spec.h"
#include "rpc/attach_stream.h"
#include "rpc/copy_in_stream.h"
#include "rpc/copy_out_stream.h"
#include "rpc/event_stream.h"
#include "rpc/file_copies.h"
#include "rpc/hold_stream.h"
#include "rpc/log_stream.h"
#include "rpc/open_streams.h"
#include "rpc/output_stream.h"
#include "rpc/received.h"
#include "rpc/stats_stream.h"
#include "rpc/status.h"

namespace agbox {
namespace {

using Call = grpc::ServerUnaryReactor*;
using Stream = grpc::ServerWriteReactor<grpc::ByteBuffer>*;
using Context = grpc::CallbackServerContext*;

// Clients test for these names; a released name is never removed.
constexpr std::string_view kFeatures[] = {
    "all-events",  "attach",   "builtin-tools", "config-yaml", "container-logs",
    "copies",      "diagnose", "error-info",    "exec",        "exec-output",
    "file-copies", "health",   "isolation",     "leases",      "list-pages",
    "mounts",      "ports",    "reflection",    "stats",       "stop-resume"};

// Replies with an error, or with the response that `fill` makes of the value.
template <class Fill>
auto answer(Call call, Fill fill) {
  return [call, fill](const auto& result) {
    if (!result) return call->Finish(to_status(result.error()));
    fill(result);
    call->Finish(grpc::Status::OK);
  };
}

auto answer_accepted(Call call, v1::AcceptedResponse* response) {
  return answer(call, [response](const Result<>&) { response->set_accepted(true); });
}

// The value is the response, or a part of it.
template <class Message>
auto answer_with_value(Call call, Message* into) {
  return answer(call, [into](const Result<Message>& value) { *into = *value; });
}

const google::protobuf::MethodDescriptor& descriptor_of(const std::string& name) {
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
      v1::SandboxService::service_full_name());
  const auto* method = service == nullptr ? nullptr : service->FindMethodByName(name);
  AGBOX_CHECK(method != nullptr, "a method that the contract has");
  return *method;
}

// Raw methods, because events are sent as the stored bytes and output as the bytes read.
using ServiceBase = v1::SandboxService::WithRawCallbackMethod_SubscribeSandboxEvents<
    v1::SandboxService::WithRawCallbackMethod_SubscribeEvents<
        v1::SandboxService::WithRawCallbackMethod_ReadExecOutput<
            v1::SandboxService::WithRawCallbackMethod_ReadContainerLogs<
                v1::SandboxService::WithRawCallbackMethod_WatchStats<
                    v1::SandboxService::WithRawCallbackMethod_HoldSandbox<
                        v1::SandboxService::CallbackService>>>>>>;

class SandboxCalls final : public ServiceBase, public SandboxService {
 public:
  SandboxCalls(DaemonIdentity identity, ControlLoop& loop, ControlPlane& plane, Logger log)
      : identity_(std::move(identity)),
        loop_(loop),
        plane_(plane),
        log_(std::move(log)),
        file_copies_(loop) {
    accept("Ping", &SandboxCalls::Ping);
    accept("CreateSandbox", &SandboxCalls::CreateSandbox);
    accept("GetSandbox", &SandboxCalls::GetSandbox);
    accept("ListSandboxes", &SandboxCalls::ListSandboxes);
    accept("ResumeSandbox", &SandboxCalls::ResumeSandbox);
    accept("StopSandbox", &SandboxCalls::StopSandbox);
    accept("DeleteSandbox", &SandboxCalls::DeleteSandbox);
    accept("DeleteSandboxes", &SandboxCalls::DeleteSandboxes);
    accept("CreateExec", &SandboxCalls::CreateExec);
    accept("CancelExec", &SandboxCalls::CancelExec);
    accept("GetExec", &SandboxCalls::GetExec);
    accept("ListActiveExecs", &SandboxCalls::ListActiveExecs);
    accept("ListExecs", &SandboxCalls::ListExecs);
    accept("GetStats", &SandboxCalls::GetStats);
    accept("Diagnose", &SandboxCalls::Diagnose);
    // Raw too, so that a message that cannot be parsed is answered. The generated code has no raw
    // form of a call with two streams that can be added to the others.
    MarkMethodRawCallback(
        descriptor_of("AttachExec").index(),
        new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
            [this](Context) { return attach_exec(); }));
  }

  grpc::Service& grpc_service() override { return *this; }

  void end_streams() override {
    const grpc::Status status = to_status(shutting_down());
    event_streams_->end_all(status);
    log_streams_->end_all(status);
    stats_streams_->end_all(status);
    hold_streams_->end_all(status);
    output_.post([streams = output_streams_, status] { streams->end_all(status); });
    file_copies_.post([streams = file_copies_.streams(), status] { streams->end_all(status); });
  }

  Call Ping(Context context, const v1::PingRequest*, v1::PingResponse* response) override {
    response->set_version(identity_.version);
    response->set_daemon("agboxd");
    for (const std::string_view feature : kFeatures) response->add_features(std::string(feature));
    response->set_instance_id(identity_.instance_id);
    return post(context, [this, response](Call call) {
      if (const auto& engine = plane_.engine()) response->set_engine(engine->title);
      const IsolationHealth isolation = plane_.isolation();
      response->set_isolation_shortcoming(isolation.shortcoming);
      response->set_isolation_repairs(isolation.repairs);
      response->set_isolation_last_repair(isolation.last_repair);
      response->set_limits_shortcoming(plane_.limits_shortcoming());
      call->Finish(grpc::Status::OK);
    });
  }

  Call CreateSandbox(Context context, const v1::CreateSandboxRequest* request,
                     v1::CreateSandboxResponse* response) override {
    log_.debug("gRPC CreateSandbox", {{"image", request->create_spec().image()}});
    auto spec = parse_create_request(*request);
    if (!spec) return refuse(context, spec.error());
    return post(context, [this, request, response, spec = std::move(*spec)](Call call) mutable {
      plane_.directory().create(std::move(spec), request->sandbox_id(),
                                answer_with_value(call, response->mutable_sandbox()));
    });
  }

  Call GetSandbox(Context context, const v1::GetSandboxRequest* request,
                  v1::GetSandboxResponse* response) override {
    log_.debug("gRPC GetSandbox", {{"sandbox_id", request->sandbox_id()}});
    return post(context, [this, request, response](Call call) {
      const auto reply = answer_with_value(call, response->mutable_sandbox());
      reply(plane_.directory().get(request->sandbox_id()));
    });
  }

  Call ListSandboxes(Context context, const v1::ListSandboxesRequest* request,
                     v1::ListSandboxesResponse* response) override {
    log_.debug("gRPC ListSandboxes");
    return post(context, [this, request, response](Call call) {
      answer_with_value(call, response)(plane_.directory().list(*request));
    });
  }

  Call ResumeSandbox(Context context, const v1::ResumeSandboxRequest* request,
                     v1::AcceptedResponse* response) override {
    log_.debug("gRPC ResumeSandbox", {{"sandbox_id", request->sandbox_id()}});
    return post(context, [this, request, response](Call call) {
      plane_.directory().resume(request->sandbox_id(), answer_accepted(call, response));
    });
  }

  Call StopSandbox(Context context, const v1::StopSandboxRequest* request,
                   v1::AcceptedResponse* response) override {
    log_.debug("gRPC StopSandbox", {{"sandbox_id", request->sandbox_id()}});
    return post(context, [this, request, response](Call call) {
      plane_.directory().stop(request->sandbox_id(), answer_accepted(call, response));
    });
  }

  Call DeleteSandbox(Context context, const v1::DeleteSandboxRequest* request,
                     v1::AcceptedResponse* response) override {
    log_.debug("gRPC DeleteSandbox", {{"sandbox_id", request->sandbox_id()}});
    return post(context, [this, request, response](Call call) {
      plane_.directory().remove(request->sandbox_id(), answer_accepted(call, response));
    });
  }

  Call DeleteSandboxes(Context context, const v1::DeleteSandboxesRequest* request,
                       v1::DeleteSandboxesResponse* response) override {
    log_.debug("gRPC DeleteSandboxes");
    return post(context, [this, request, response](Call call) {
      auto reply = answer(call, [response](const Result<std::vector<std::string>>& ids) {
        response->mutable_deleted_sandbox_ids()->Assign(ids->begin(), ids->end());
        response->set_deleted_count(static_cast<std::uint32_t>(ids->size()));
      });
      plane_.directory().remove_matching(request->label_selector(), reply);
    });
  }

  Stream HoldSandbox(Context, const grpc::ByteBuffer* request) override {
    log_.debug("gRPC HoldSandbox");
    auto hold = [this](std::string sandbox_id, Directory::OnHeld on_held,
                       std::function<void(Result<>)> done) {
      return plane_.directory().hold(std::move(sandbox_id), std::move(on_held), std::move(done));
    };
    return open_hold_stream(loop_, std::move(hold), hold_streams_, *request);
  }

  Stream SubscribeSandboxEvents(Context, const grpc::ByteBuffer* request) override {
    log_.debug("gRPC SubscribeToSandboxEvents");
    return open_events<SandboxEventStream>(*request);
  }

  Stream SubscribeEvents(Context, const grpc::ByteBuffer* request) override {
    log_.debug("gRPC SubscribeEvents");
    return open_events<AllEventsStream>(*request);
  }

  Stream ReadExecOutput(Context, const grpc::ByteBuffer* request) override {
    log_.debug("gRPC ReadExecOutput");
    auto find = [this](const std::string& exec_id, OnExecEnd on_end, const auto& reply) {
      plane_.directory().find_exec_output(exec_id, std::move(on_end), reply);
    };
    return OutputStream::open(loop_, output_, std::move(find), output_streams_, *request);
  }

  Stream ReadContainerLogs(Context, const grpc::ByteBuffer* request) override {
    log_.debug("gRPC ReadContainerLogs");
    auto read_log = [this](ContainerLogs::Request wanted, ContainerLogs::Write write,
                           std::function<void(Result<>)> done) {
      return plane_.read_log(std::move(wanted), std::move(write), std::move(done));
    };
    return open_log_stream(loop_, std::move(read_log), log_streams_, *request);
  }

  grpc::ServerReadReactor<v1::CopyInRequest>* CopyIn(Context,
                                                     v1::CopyInResponse* response) override {
    log_.debug("gRPC CopyIn");
    return CopyInStream::open(file_copies_, begin_file_copy(), response);
  }

  grpc::ServerWriteReactor<v1::CopyOutResponse>* CopyOut(
      Context, const v1::CopyOutRequest* request) override {
    log_.debug("gRPC CopyOut", {{"sandbox_id", request->sandbox_id()}});
    return CopyOutStream::open(file_copies_, begin_file_copy(), *request);
  }

  Call CreateExec(Context context, const v1::CreateExecRequest* request,
                  v1::CreateExecResponse* response) override {
    log_.debug("gRPC ExecInSandbox", {{"sandbox_id", request->sandbox_id()}});
    auto parsed = parse_exec_request(*request);
    return post(context, [this, request, response, parsed = std::move(parsed)](Call call) mutable {
      plane_.directory().create_exec(request->sandbox_id(), std::move(parsed),
                                     answer_with_value(call, response));
    });
  }

  Call CancelExec(Context context, const v1::CancelExecRequest* request,
                  v1::AcceptedResponse* response) override {
    log_.debug("gRPC CancelExec", {{"exec_id", request->exec_id()}});
    return post(context, [this, request, response](Call call) {
      plane_.directory().cancel_exec(request->exec_id(), answer_accepted(call, response));
    });
  }

  Call GetExec(Context context, const v1::GetExecRequest* request,
               v1::GetExecResponse* response) override {
    log_.debug("gRPC GetExec", {{"exec_id", request->exec_id()}});
    return post(context, [this, request, response](Call call) {
      plane_.directory().get_exec(request->exec_id(),
                                  answer_with_value(call, response->mutable_exec()));
    });
  }

  Call ListActiveExecs(Context context, const v1::ListActiveExecsRequest* request,
                       v1::ListActiveExecsResponse* response) override {
    log_.debug("gRPC ListActiveExecs");
    return post(context, [this, request, response](Call call) {
      *response = plane_.directory().list_active_execs(*request);
      call->Finish(grpc::Status::OK);
    });
  }

  Call ListExecs(Context context, const v1::ListExecsRequest* request,
                 v1::ListExecsResponse* response) override {
    log_.debug("gRPC ListExecs", {{"sandbox_id", request->sandbox_id()}});
    return post(context, [this, request, response](Call call) {
      plane_.directory().list_execs(*request, answer_with_value(call, response));
    });
  }

  Call GetStats(Context context, const v1::GetStatsRequest* request,
                v1::GetStatsResponse* response) override {
    log_.debug("gRPC GetStats", {{"sandbox_id", request->sandbox_id()}});
    return post(context, [this, request, response](Call call) {
      plane_.get_stats(request->sandbox_id(), answer_with_value(call, response->mutable_stats()));
    });
  }

  Stream WatchStats(Context, const grpc::ByteBuffer* request) override {
    log_.debug("gRPC WatchStats");
    auto watch = [this](std::string sandbox_id, std::chrono::nanoseconds interval,
                        StatsSampler::Write write, std::function<void(Result<>)> done) {
      return plane_.watch_stats(std::move(sandbox_id), interval, std::move(write), std::move(done));
    };
    return open_stats_stream(loop_, std::move(watch), stats_streams_, *request);
  }

  Call Diagnose(Context context, const v1::DiagnoseRequest* request,
                v1::DiagnoseResponse* response) override {
    log_.debug("gRPC Diagnose");
    auto images = parse_diagnose_request(*request);
    if (!images) return refuse(context, images.error());
    return post(context, [this, response, images = std::move(*images)](Call call) mutable {
      plane_.diagnose(std::move(images), answer_with_value(call, response));
    });
  }

 private:
  AttachStream* attach_exec() {
    log_.debug("gRPC AttachExec");
    return AttachStream::open(loop_, output_, plane_.directory(), output_streams_);
  }

  static Call refuse(Context context, const Error& error) {
    Call call = context->DefaultReactor();
    call->Finish(to_status(error));
    return call;
  }

  BeginFileCopy begin_file_copy() {
    return [this](const std::string& sandbox_id, FileOrder order, OnFilePipe on_open,
                  OnFilesReport on_report) {
      return plane_.directory().transfer_files(sandbox_id, std::move(order), std::move(on_open),
                                               std::move(on_report));
    };
  }

  // Answers requests that cannot be parsed with INVALID_ARGUMENT, and passes on all others.
  template <class Message, class Response>
  void accept(const std::string& name,
              Call (SandboxCalls::*method)(Context, const Message*, Response*)) {
    const auto& descriptor = descriptor_of(name);
    auto handle = [this, method, type = descriptor.input_type()->name()](
                      Context context, const Received<Message>* request,
                      Response* response) -> Call {
      if (request->is_valid) return (this->*method)(context, &request->message, response);
      return refuse(context, {reason::kInvalidArgument, "the request is not a " + type});
    };
    // As the generated code does it, with another type of request.
    MarkMethodCallback(
        descriptor.index(),
        new grpc::internal::CallbackUnaryHandler<Received<Message>, Response>(handle));
  }

  template <class Kind>
  Stream open_events(const grpc::ByteBuffer& request) {
    auto subscribe = [this](const auto& parsed, std::function<void()> on_available) {
      return plane_.directory().subscribe(parsed, std::move(on_available));
    };
    return Kind::open(loop_, std::move(subscribe), event_streams_, request);
  }

  // Runs `work` on the control thread; it replies to the call.
  template <class Work>
  Call post(Context context, Work work) {
    Call call = context->DefaultReactor();
    loop_.post([call, work = std::move(work)]() mutable { work(call); });
    return call;
  }

  DaemonIdentity identity_;
  ControlLoop& loop_;
  ControlPlane& plane_;
  Logger log_;
  std::shared_ptr<OpenStreams> event_streams_ = std::make_shared<OpenStreams>();
  std::shared_ptr<OpenStreams> log_streams_ = std::make_shared<OpenStreams>();
  std::shared_ptr<OpenStreams> stats_streams_ = std::make_shared<OpenStreams>();
  std::shared_ptr<OpenStreams> hold_streams_ = std::make_shared<OpenStreams>();
  std::shared_ptr<OpenStreams> output_streams_ = std::make_shared<OpenStreams>();
  OutputLoop output_;
  FileCopies file_copies_;
};

}  // namespace

std::unique_ptr<SandboxService> make_sandbox_service(DaemonIdentity identity, ControlLoop& loop,
                                                     ControlPlane& plane, Logger log) {
  return std::make_unique<SandboxCalls>(std::move(identity), loop, plane, std::move(log));
}

}  // namespace agbox
