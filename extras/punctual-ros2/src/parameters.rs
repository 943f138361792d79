//! The services for reading and changing parameters.

use std::ffi::OsString;
use std::fmt;
use std::thread;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use futures::future::{BoxFuture, Either, join_all, select};
use punctual::background::warn;
use punctual_bridge::parameters::{Parameter, ParameterAccess, Refused};
use ros2_client::dds::{Node, Server, ServiceMapping};
use ros2_client::parameters::raw::{self, SetParametersResult};
use ros2_client::parameters::{ParameterType, ParameterValue};
use ros2_client::rcl_interfaces::{
    DescribeParametersRequest, DescribeParametersResponse, GetParameterTypesRequest,
    GetParameterTypesResponse, GetParametersRequest, GetParametersResponse, ListParametersRequest,
    ListParametersResponse, ListParametersResult, SetParametersAtomicallyResponse, SetParametersRequest,
    SetParametersResponse,
};
use ros2_client::{Message, Name, ReadError, ServiceTypeName};

use super::values::{descriptor, listed, text, unknown, value};
use super::{PAUSE, Ros2Error, qos};

/// Returns the mapping of requests and answers to DDS for this ROS middleware.
pub(super) fn mapping(middleware: Option<OsString>) -> Result<ServiceMapping, Ros2Error> {
    let name = middleware.unwrap_or_default().to_string_lossy().into_owned();
    match name.as_str() {
        "" | "rmw_fastrtps_cpp" | "rmw_fastrtps_dynamic_cpp" => Ok(ServiceMapping::Enhanced),
        "rmw_cyclonedds_cpp" => Ok(ServiceMapping::Cyclone),
        _ => Err(Ros2Error::Middleware(name)),
    }
}

/// The handlers of the services of a node.
pub(super) type Answers = Vec<BoxFuture<'static, ()>>;

/// Creates the services of `node`, each with its handler.
///
/// # Errors
/// The error message.
pub(super) fn services(
    node: &mut Node,
    mapping: ServiceMapping,
    access: ParameterAccess,
) -> Result<Answers, String> {
    let mut making = Making { node, mapping, access, answering: vec![] };
    making.service("list_parameters", "ListParameters", list)?;
    making.service("get_parameters", "GetParameters", get)?;
    making.service("get_parameter_types", "GetParameterTypes", types)?;
    making.service("describe_parameters", "DescribeParameters", describe)?;
    making.service("set_parameters", "SetParameters", set_each)?;
    making.service("set_parameters_atomically", "SetParametersAtomically", set_all)?;
    Ok(making.answering)
}

/// Runs the services of the newest node until there are no further ones.
pub(super) async fn serve_all(mut links: UnboundedReceiver<Answers>) {
    let mut newest = links.next().await;
    while let Some(answers) = newest {
        newest = match select(links.next(), join_all(answers)).await {
            Either::Left((newest, _)) => newest,
            Either::Right((_, links)) => links.await,
        };
    }
}

struct Making<'n> {
    node: &'n mut Node,
    mapping: ServiceMapping,
    access: ParameterAccess,
    answering: Answers,
}

impl Making<'_> {
    /// Adds a service with this name, below that of the node.
    fn service<Q, A>(
        &mut self,
        name: &str,
        kind: &str,
        answer: fn(&ParameterAccess, Q) -> A,
    ) -> Result<(), String>
    where
        Q: Message + Clone + Send + Sync + 'static,
        A: Message + Send + Sync + 'static,
    {
        let said = |error: &dyn fmt::Display| format!("the service {name}: {error}");
        let full = Name::new(&self.node.fully_qualified_name(), name).map_err(|error| said(&error))?;
        let kind = ServiceTypeName::new("rcl_interfaces", kind);
        let server = self.node.create_server::<Q, A>(self.mapping, &full, &kind, qos(), qos());
        let server = server.map_err(|error| said(&error))?;
        self.answering.push(Box::pin(serve(server, self.access.clone(), answer)));
        Ok(())
    }
}

async fn serve<Q, A>(server: Server<Q, A>, access: ParameterAccess, answer: fn(&ParameterAccess, Q) -> A)
where
    Q: Message + Send + Sync + 'static,
    A: Message + Send + Sync + 'static,
{
    let mut requests = server.receive_request_stream();
    let mut said = false;
    let mut warn_once = |what: &str, error: &dyn fmt::Display| {
        if !std::mem::replace(&mut said, true) {
            warn(format_args!("parameters of ROS 2: {what}: {error}"));
        }
    };
    while let Some(request) = requests.next().await {
        match request {
            Ok((id, request)) => {
                // The client has its own timeout.
                if let Err(error) = server.send_response(id, answer(&access, request)) {
                    warn_once("an answer cannot be sent", &error);
                }
            }
            Err(ReadError::Deserialization { .. }) => access.count_malformed(),
            Err(error) => {
                warn_once("something cannot be received", &error);
                thread::sleep(PAUSE);
            }
        }
    }
}

fn list(access: &ParameterAccess, request: ListParametersRequest) -> ListParametersResponse {
    let (names, prefixes) = listed(&access.list(), &request.prefixes, request.depth);
    ListParametersResponse { result: ListParametersResult { names, prefixes } }
}

/// Returns the result of `of` for each named parameter, in that order.
fn each<R>(access: &ParameterAccess, names: &[String], of: impl Fn(&str, Option<&Parameter>) -> R) -> Vec<R> {
    let all = access.list();
    let find = |name: &String| all.iter().find(|parameter| parameter.name == *name);
    names.iter().map(|name| of(name, find(name))).collect()
}

fn get(access: &ParameterAccess, request: GetParametersRequest) -> GetParametersResponse {
    let of = |_: &str, found: Option<&Parameter>| found.map_or(ParameterValue::NotSet, value).into();
    GetParametersResponse { values: each(access, &request.names, of) }
}

fn types(access: &ParameterAccess, request: GetParameterTypesRequest) -> GetParameterTypesResponse {
    let kind = |parameter: &Parameter| value(parameter).to_parameter_type();
    let of = |_: &str, found: Option<&Parameter>| found.map_or(ParameterType::NotSet, kind) as u8;
    GetParameterTypesResponse { values: each(access, &request.names, of) }
}

fn describe(access: &ParameterAccess, request: DescribeParametersRequest) -> DescribeParametersResponse {
    let of = |name: &str, found: Option<&Parameter>| found.map_or_else(|| unknown(name), descriptor);
    DescribeParametersResponse { values: each(access, &request.names, of) }
}

fn set_each(access: &ParameterAccess, request: SetParametersRequest) -> SetParametersResponse {
    SetParametersResponse {
        results: request.parameter.into_iter().map(|one| set(access, vec![one])).collect(),
    }
}

fn set_all(access: &ParameterAccess, request: SetParametersRequest) -> SetParametersAtomicallyResponse {
    SetParametersAtomicallyResponse { result: set(access, request.parameter) }
}

/// Sets all of these, or none.
fn set(access: &ParameterAccess, wanted: Vec<raw::Parameter>) -> SetParametersResult {
    let (successful, reason) = match try_to_set(access, wanted) {
        Ok(()) => (true, String::new()),
        Err(refused) => (false, refused.to_string()),
    };
    SetParametersResult { successful, reason }
}

fn try_to_set(access: &ParameterAccess, wanted: Vec<raw::Parameter>) -> Result<(), Refused> {
    // In ROS, an empty request succeeds without effect.
    if wanted.is_empty() {
        return Ok(());
    }
    let all = access.list();
    let (mut assignments, mut reasons) = (Vec::new(), Vec::new());
    for raw::Parameter { name, value } in wanted {
        // An unknown parameter is refused later, with a list of the existing names.
        let kind = all.iter().find(|parameter| parameter.name == name).map(|parameter| &parameter.kind);
        match kind.map_or_else(|| Ok(String::new()), |kind| text(kind, &ParameterValue::from(value))) {
            Ok(text) => assignments.push((name, text)),
            Err(why) => reasons.push(format!("{name}: {why}")),
        }
    }
    if reasons.is_empty() {
        return access.set(&assignments);
    }
    access.count_refused();
    Err(Refused(reasons))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middleware_matches_ros() {
        for (name, expected) in [
            (None, ServiceMapping::Enhanced),
            (Some(""), ServiceMapping::Enhanced),
            (Some("rmw_fastrtps_cpp"), ServiceMapping::Enhanced),
            (Some("rmw_cyclonedds_cpp"), ServiceMapping::Cyclone),
        ] {
            assert_eq!(mapping(name.map(Into::into)).unwrap(), expected);
        }
        let error = mapping(Some("rmw_zenoh_cpp".into())).unwrap_err().to_string();
        assert!(error.contains("rmw_zenoh_cpp") && error.contains("rmw_cyclonedds_cpp"), "{error}");
    }
}
