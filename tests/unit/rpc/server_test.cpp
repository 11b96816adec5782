// SPDX-License-Identifier: Apache-2.0
// The server behind a real socket, with a real gRPC client.
#include "rpc/server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>
#include <vector>

#include "agbox/rpc/error_details.pb.h"
#include "agbox/v1/service.grpc.pb.h"
#include "control/control_plane.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "place/local/local_place.h"
#include "rpc/unix_listener.h"
#include "unit/control/docker_engine_options.h"
#include "unit/place/fake_isolation.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;

// Runs loop, listener and server on a separate thread, as main() does on the main thread.
class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    set_log_level(LogLevel::Error);
    std::promise<void> serving;
    std::future<void> is_serving = serving.get_future();
    control_ = std::jthread([this, serving = std::move(serving)]() mutable { run(serving); });
    is_serving.wait();
    channel_ = grpc::CreateChannel("unix://" + path_, grpc::InsecureChannelCredentials());
    stub_ = v1::SandboxService::NewStub(channel_);
  }
  ~ServerTest() override {
    shut_down();
    set_log_level(LogLevel::Info);
  }

  void shut_down() {
    if (!control_.joinable()) return;
    loop_->post([this] {
      listener_->close();
      plane_->release_waiting_calls();
      server_->shut_down(100ms, [this] { plane_->shut_down([this] { loop_->stop(); }); });
    });
    control_.join();
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::SandboxService::Stub> stub_;
  grpc::ClientContext context_;

 private:
  void run(std::promise<void>& serving) {
    ControlLoop loop;
    loop_ = &loop;
    const UniqueFd directory(::open(temp_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const SystemClock clock;
    auto store =
        Store::open({.path = temp_.path() / "ids.db",
                     .post = [&loop](std::function<void()> work) { loop.post(std::move(work)); },
                     .clock = clock});
    // No engine listens there, and the guest never runs, so any program will do.
    DockerEngine engine(loop.io().get_executor(), loop.io().get_executor(),
                        docker_engine_options(temp_.path() / "no-engine.sock",
                                              (*store)->instance_id(), "10.201.0.0/16"),
                        Logger());
    FakeIsolation isolation(loop.io());
    auto place = LocalPlace::create(loop.io().get_executor(), loop.io().get_executor(), isolation,
                                    {.instance_id = (*store)->instance_id(),
                                     .state_root = temp_.path(),
                                     .guest_program = "/bin/true",
                                     .output_root = temp_.path() / "execs"},
                                    Logger());
    auto plane = ControlPlane::start(loop, **store, clock, engine, **place, {}, Logger());
    plane_ = plane->get();
    auto server =
        RpcServer::start(loop, **plane, {.version = "1.2.3", .instance_id = "the-id"}, Logger());
    auto listener = UnixListener::open(loop, directory.get(), path_, Logger());
    server_ = server->get();
    listener_ = listener->get();
    listener_->accept([this](UniqueFd connection) { server_->serve(std::move(connection)); });
    serving.set_value();
    loop.run();
  }

  TempDirectory temp_;
  std::string path_ = temp_.path() / "agboxd.sock";
  ControlLoop* loop_ = nullptr;
  ControlPlane* plane_ = nullptr;
  RpcServer* server_ = nullptr;
  UnixListener* listener_ = nullptr;
  std::jthread control_;
};

TEST_F(ServerTest, PingReturnsTheIdentity) {
  v1::PingResponse response;
  const grpc::Status status = stub_->Ping(&context_, {}, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.version(), "1.2.3");
  EXPECT_EQ(response.daemon(), "agboxd");
  EXPECT_EQ(response.instance_id(), "the-id");
  EXPECT_THAT(response.features(), Contains("health"));
  EXPECT_THAT(response.features(), Contains("exec"));
}

template <class Response, class Method, class Request>
grpc::Status call_of(v1::SandboxService::Stub& stub, Method method, const Request& request) {
  grpc::ClientContext context;
  Response response;
  return (stub.*method)(&context, request, &response);
}

void expect_no_sandbox(const grpc::Status& status) {
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "sandbox nobody was not found");
  rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  rpc::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(details.details(0).value()));
  EXPECT_EQ(info.reason(), "SANDBOX_NOT_FOUND");
  EXPECT_EQ(info.metadata().at("sandbox_id"), "nobody");
}

TEST_F(ServerTest, AnUnknownSandboxIsNotFound) {
  using Stub = v1::SandboxService::Stub;
  v1::StopSandboxRequest stop;
  stop.set_sandbox_id("nobody");
  expect_no_sandbox(call_of<v1::AcceptedResponse>(*stub_, &Stub::StopSandbox, stop));
  v1::ResumeSandboxRequest resume;
  resume.set_sandbox_id("nobody");
  expect_no_sandbox(call_of<v1::AcceptedResponse>(*stub_, &Stub::ResumeSandbox, resume));
}

// The sandbox is checked first, and nothing else of an unknown exec.
TEST_F(ServerTest, UnknownExecsAreNotFound) {
  using Stub = v1::SandboxService::Stub;
  const auto expect = [](const grpc::Status& status, const std::string& words) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(status.error_message(), words);
  };
  v1::CreateExecRequest create;
  create.set_sandbox_id("nobody");
  expect(call_of<v1::CreateExecResponse>(*stub_, &Stub::CreateExec, create),
         "sandbox nobody was not found");
  v1::CancelExecRequest cancel;
  cancel.set_exec_id("none-1");
  expect(call_of<v1::AcceptedResponse>(*stub_, &Stub::CancelExec, cancel),
         "exec none-1 was not found");
  v1::GetExecRequest get;
  get.set_exec_id("none-1");
  expect(call_of<v1::GetExecResponse>(*stub_, &Stub::GetExec, get), "exec none-1 was not found");
  v1::ListExecsRequest list;
  list.set_sandbox_id("nobody");
  expect(call_of<v1::ListExecsResponse>(*stub_, &Stub::ListExecs, list),
         "sandbox nobody was not found");
  v1::ListActiveExecsRequest active;
  active.set_sandbox_id("nobody");
  EXPECT_TRUE(call_of<v1::ListActiveExecsResponse>(*stub_, &Stub::ListActiveExecs, active).ok());
}

TEST_F(ServerTest, WithoutAnEngineACreateIsUnavailableAndReservesNothing) {
  v1::CreateSandboxRequest request;
  request.mutable_create_spec()->set_image("busybox");
  request.set_sandbox_id("box-1");
  v1::CreateSandboxResponse created;
  const grpc::Status status = stub_->CreateSandbox(&context_, request, &created);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("the Docker Engine is unreachable"));

  grpc::ClientContext context;
  v1::GetSandboxRequest get;
  get.set_sandbox_id("box-1");
  v1::GetSandboxResponse got;
  EXPECT_EQ(stub_->GetSandbox(&context, get, &got).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerTest, AStreamOfAnUnknownSandboxEndsWithNotFound) {
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id("nobody");
  const auto stream = stub_->SubscribeSandboxEvents(&context_, request);
  v1::SandboxEvent event;
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerTest, AStreamOfAllEventsConfirmsItsBeginning) {
  v1::SubscribeEventsRequest request;
  request.set_start(v1::EVENTS_START_OLDEST);
  const auto stream = stub_->SubscribeEvents(&context_, request);
  v1::SubscribeEventsResponse message;
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_THAT(message.cursor(), testing::EndsWith("-0"));
  EXPECT_TRUE(message.caught_up());
  EXPECT_FALSE(message.has_event() || message.events_missing());
  context_.TryCancel();
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);

  grpc::ClientContext context;
  request.set_cursor(message.cursor() + "1");  // beyond the newest
  const auto refused = stub_->SubscribeEvents(&context, request);
  EXPECT_FALSE(refused->Read(&message));
  EXPECT_EQ(refused->Finish().error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

rpc::ErrorInfo error_info(const grpc::Status& status) {
  rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.message(), status.error_message());
  rpc::ErrorInfo info;
  EXPECT_TRUE(details.details_size() == 1 && info.ParseFromString(details.details(0).value()));
  return info;
}

TEST_F(ServerTest, ARequestThatCannotBeParsedIsAnInvalidArgument) {
  const auto* service = v1::PingRequest::descriptor()->file()->pool()->FindServiceByName(
      v1::SandboxService::service_full_name());
  ASSERT_NE(service, nullptr);
  const grpc::Slice garbage("\xff\xff\xff");
  for (int i = 0; i < service->method_count(); ++i) {
    const auto* method = service->method(i);
    if (method->server_streaming()) continue;
    const std::string path = "/" + service->full_name() + "/" + method->name();
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
            channel_.get(), {path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC, channel_},
            &context, grpc::ByteBuffer(&garbage, 1), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << path;
    EXPECT_EQ(status.error_message(), "the request is not a " + method->input_type()->name());
    EXPECT_EQ(error_info(status).reason(), "INVALID_ARGUMENT");
  }
}

TEST_F(ServerTest, AStreamOfReflectionDescribesTheService) {
  const auto reflection = grpc::reflection::v1::ServerReflection::NewStub(channel_);
  const auto stream = reflection->ServerReflectionInfo(&context_);
  const auto ask = [&](const grpc::reflection::v1::ServerReflectionRequest& request) {
    grpc::reflection::v1::ServerReflectionResponse response;
    EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
    EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());
    return response;
  };
  grpc::reflection::v1::ServerReflectionRequest request;
  request.set_list_services("");
  std::vector<std::string> names;
  const auto listed = ask(request);
  for (const auto& service : listed.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, Contains("agbox.v1.SandboxService"));
  EXPECT_THAT(names, Contains("grpc.reflection.v1.ServerReflection"));

  request.set_file_containing_symbol("agbox.v1.SandboxService");
  std::set<std::string> files;
  const auto described = ask(request);
  for (const std::string& bytes : described.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(bytes));
    EXPECT_TRUE(files.insert(file.name()).second) << "each file once: " << file.name();
  }
  for (const char* name :
       {"agbox/v1/service.proto", "agbox/v1/spec.proto", "google/protobuf/duration.proto"}) {
    EXPECT_TRUE(files.contains(name)) << name;
  }
  request.set_file_by_filename("agbox/v1/spec.proto");
  EXPECT_TRUE(ask(request).has_file_descriptor_response());

  request.set_file_containing_symbol("agbox.v1.Nothing");
  EXPECT_EQ(ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_all_extension_numbers_of_type("agbox.v1.CreateSpec");
  EXPECT_EQ(ask(request).all_extension_numbers_response().base_type_name(), "agbox.v1.CreateSpec");
  request.mutable_file_containing_extension()->set_containing_type("agbox.v1.CreateSpec");
  EXPECT_EQ(ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ask({}).error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// Protobuf would need minutes to find that there is no such symbol.
TEST_F(ServerTest, ALongRequestForReflectionIsRefused) {
  const auto reflection = grpc::reflection::v1::ServerReflection::NewStub(channel_);
  const auto stream = reflection->ServerReflectionInfo(&context_);
  grpc::reflection::v1::ServerReflectionRequest request;
  request.set_file_containing_symbol(std::string(1 << 20, '.'));
  EXPECT_TRUE(stream->Write(request));
  grpc::reflection::v1::ServerReflectionResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, AMessageAbove4MiBIsRefused) {
  v1::CreateSandboxRequest request;
  request.set_config_yaml(std::string(5 << 20, 'x'));
  v1::CreateSandboxResponse response;
  EXPECT_EQ(stub_->CreateSandbox(&context_, request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ServerTest, AfterShutdownACallIsUnavailable) {
  shut_down();
  v1::PingResponse response;
  EXPECT_EQ(stub_->Ping(&context_, {}, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServerTest, DiagnoseReportsAMissingEngine) {
  v1::DiagnoseResponse response;
  const grpc::Status status = stub_->Diagnose(&context_, {}, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  std::map<std::string, v1::FindingVerdict> verdicts;
  for (const v1::Finding& finding : response.findings())
    verdicts[finding.check()] = finding.verdict();
  EXPECT_EQ(verdicts.at("engine"), v1::FINDING_VERDICT_BROKEN);
  EXPECT_EQ(verdicts.at("resolvers"), v1::FINDING_VERDICT_BROKEN);
  EXPECT_EQ(verdicts.at("store"), v1::FINDING_VERDICT_OK);
}

TEST_F(ServerTest, DiagnoseRefusesInvalidImageNames) {
  v1::DiagnoseRequest request;
  request.add_images("Not An Image");
  const grpc::Status status =
      call_of<v1::DiagnoseResponse>(*stub_, &v1::SandboxService::Stub::Diagnose, request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("images: "));
}

}  // namespace
}  // namespace agbox
