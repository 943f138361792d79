//! The services for reading and changing parameters.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use futures::future::{BoxFuture, Either, join_all, select};
use punctual_bridge::parameters::{self, Parameter, Refused, Remote, Remotes, RequestError};
use punctual_transport::{Network, Notice};
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

use crate::arguments::Arguments;
use crate::node::{ERROR_PAUSE, Ros2, service_qos};
use crate::sim_time::{self, SimTime};
use crate::values::{descriptor, listed, text, unknown, value};

/// Returns the mapping of requests and answers to DDS for this ROS middleware, if it is supported.
pub(crate) fn mapping(middleware: Option<&str>) -> Option<ServiceMapping> {
    match middleware.unwrap_or_default() {
        "" | "rmw_fastrtps_cpp" | "rmw_fastrtps_dynamic_cpp" => Some(ServiceMapping::Enhanced),
        "rmw_cyclonedds_cpp" => Some(ServiceMapping::Cyclone),
        _ => None,
    }
}

/// The time limit for the app to serve its parameters, if some have initial values.
const SERVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The parameters of the node, and those of the app, which has a socket for them.
#[derive(Clone)]
pub(crate) struct Access {
    process: u32,
    found: Arc<OnceLock<Remote>>,
    pub(crate) time: SimTime,
}

impl Access {
    /// Provides the parameters of the app with this process number. It may start to serve them
    /// later.
    pub(crate) fn new(process: u32) -> Self {
        Self { process, found: Arc::default(), time: SimTime::default() }
    }

    fn remote(&self) -> Result<&Remote, RequestError> {
        if let Some(remote) = self.found.get() {
            return Ok(remote);
        }
        let running = Remotes::running()?.found;
        // The process number of every app in another PID namespace is 0.
        let is_own = |remote: &Remote| self.process != 0 && remote.process() == self.process;
        let own = running.into_iter().find(is_own);
        own.map(|remote| self.found.get_or_init(|| remote)).ok_or(RequestError::NoApp(vec![]))
    }

    /// Returns `true` if the app is known to serve parameters.
    pub(crate) fn is_found(&self) -> bool {
        self.found.get().is_some()
    }

    /// Returns the parameters of the node with their present values.
    pub(crate) fn list_own(&self) -> Vec<Parameter> {
        parameters::list(&self.time.parameters())
    }

    /// Returns the parameters with their present values; those of the node alone if the app does
    /// not answer. A parameter of the node hides one of the app with its name.
    pub(crate) fn list(&self) -> Vec<Parameter> {
        let mut all = self.list_own();
        let app = self.remote().and_then(Remote::list).unwrap_or_default();
        all.extend(app.into_iter().filter(|parameter| !sim_time::is_parameter(&parameter.name)));
        all
    }

    /// Makes all of these assignments, as soon as the app serves its parameters.
    ///
    /// # Errors
    /// The reason why the app refuses, or does not serve parameters within [`SERVE_TIMEOUT`].
    pub(crate) fn set_initial(&self, assignments: &[(String, String)]) -> Result<(), String> {
        let begun = Instant::now();
        let needs_app = assignments.iter().any(|(name, _)| !sim_time::is_parameter(name));
        while needs_app && let Err(error) = self.remote() {
            if begun.elapsed() >= SERVE_TIMEOUT {
                return Err(error.to_string());
            }
            thread::sleep(ERROR_PAUSE);
        }
        self.set(assignments).map_err(|refused| refused.to_string())
    }

    /// Makes all of these assignments, or none.
    fn set(&self, assignments: &[(String, String)]) -> Result<(), Refused> {
        let is_own = |(name, _): &(String, String)| sim_time::is_parameter(name);
        let (own, others): (Vec<_>, Vec<_>) = assignments.iter().cloned().partition(is_own);
        let mut node = self.time.parameters();
        if !own.is_empty() {
            node = parameters::assign(&node, &own)?;
        }
        if !others.is_empty() {
            match self.remote().and_then(|remote| remote.set(&others)) {
                Ok(_) => {}
                Err(RequestError::Refused(refused)) => return Err(refused),
                Err(error) => return Err(Refused(vec![error.to_string()])),
            }
        }
        self.time.set(node);
        Ok(())
    }
}

/// The handlers of the services of a node.
pub(crate) type Answers = Vec<BoxFuture<'static, ()>>;

/// Creates the services of `node`, each with its handler.
///
/// # Errors
/// The error message.
pub(crate) fn services(
    node: &mut Node,
    arguments: &Arguments,
    mapping: ServiceMapping,
    access: &Access,
) -> Result<Answers, String> {
    let mut making = Making { node, arguments, mapping, access, answering: vec![] };
    making.service("list_parameters", "ListParameters", list)?;
    making.service("get_parameters", "GetParameters", get)?;
    making.service("get_parameter_types", "GetParameterTypes", types)?;
    making.service("describe_parameters", "DescribeParameters", describe)?;
    making.service("set_parameters", "SetParameters", set_each)?;
    making.service("set_parameters_atomically", "SetParametersAtomically", set_all)?;
    Ok(making.answering)
}

/// Runs the services of the newest node until there are no further ones.
pub(crate) async fn serve_all(mut links: UnboundedReceiver<Answers>) {
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
    arguments: &'n Arguments,
    mapping: ServiceMapping,
    access: &'n Access,
    answering: Answers,
}

impl Making<'_> {
    /// Adds a service with this name, below that of the node.
    fn service<Q, A>(&mut self, name: &str, kind: &str, answer: fn(&Access, Q) -> A) -> Result<(), String>
    where
        Q: Message + Clone + Send + Sync + 'static,
        A: Message + Send + Sync + 'static,
    {
        let printed = |error: &dyn fmt::Display| format!("the service {name}: {error}");
        let full = self.arguments.service(&format!("{}/{name}", self.node.fully_qualified_name()));
        let full = Name::parse(&full).map_err(|error| printed(&error))?;
        let kind = ServiceTypeName::new("rcl_interfaces", kind);
        let server =
            self.node.create_server::<Q, A>(self.mapping, &full, &kind, service_qos(), service_qos());
        let server = server.map_err(|error| printed(&error))?;
        self.answering.push(Box::pin(serve(server, self.access.clone(), answer)));
        Ok(())
    }
}

async fn serve<Q, A>(server: Server<Q, A>, access: Access, answer: fn(&Access, Q) -> A)
where
    Q: Message + Send + Sync + 'static,
    A: Message + Send + Sync + 'static,
{
    let mut requests = server.receive_request_stream();
    let mut notice = Notice::new(Ros2::NAME);
    while let Some(request) = requests.next().await {
        match request {
            Ok((id, request)) => {
                // The client has its own timeout.
                if let Err(error) = server.send_response(id, answer(&access, request)) {
                    notice.add(format_args!("parameters: an answer cannot be sent: {error}"));
                }
            }
            Err(ReadError::Deserialization { .. }) => {
                notice.add(format_args!("parameters: a request is malformed"));
            }
            Err(error) => {
                notice.add(format_args!("parameters: cannot receive a request: {error}"));
                thread::sleep(ERROR_PAUSE);
            }
        }
    }
}

fn list(access: &Access, request: ListParametersRequest) -> ListParametersResponse {
    let (names, prefixes) = listed(&access.list(), &request.prefixes, request.depth);
    ListParametersResponse { result: ListParametersResult { names, prefixes } }
}

/// Returns the result of `of` for each named parameter, in that order.
fn each<R>(access: &Access, names: &[String], of: impl Fn(&str, Option<&Parameter>) -> R) -> Vec<R> {
    let all = access.list();
    let find = |name: &String| all.iter().find(|parameter| parameter.name == *name);
    names.iter().map(|name| of(name, find(name))).collect()
}

fn get(access: &Access, request: GetParametersRequest) -> GetParametersResponse {
    let of = |_: &str, found: Option<&Parameter>| found.map_or(ParameterValue::NotSet, value).into();
    GetParametersResponse { values: each(access, &request.names, of) }
}

fn types(access: &Access, request: GetParameterTypesRequest) -> GetParameterTypesResponse {
    let kind = |parameter: &Parameter| value(parameter).to_parameter_type();
    let of = |_: &str, found: Option<&Parameter>| found.map_or(ParameterType::NotSet, kind) as u8;
    GetParameterTypesResponse { values: each(access, &request.names, of) }
}

fn describe(access: &Access, request: DescribeParametersRequest) -> DescribeParametersResponse {
    let of = |name: &str, found: Option<&Parameter>| found.map_or_else(|| unknown(name), descriptor);
    DescribeParametersResponse { values: each(access, &request.names, of) }
}

fn set_each(access: &Access, request: SetParametersRequest) -> SetParametersResponse {
    SetParametersResponse {
        results: request.parameter.into_iter().map(|one| set(access, vec![one])).collect(),
    }
}

fn set_all(access: &Access, request: SetParametersRequest) -> SetParametersAtomicallyResponse {
    SetParametersAtomicallyResponse { result: set(access, request.parameter) }
}

/// Sets all of these, or none.
fn set(access: &Access, wanted: Vec<raw::Parameter>) -> SetParametersResult {
    let (successful, reason) = match try_to_set(access, wanted) {
        Ok(()) => (true, String::new()),
        Err(refused) => (false, refused.to_string()),
    };
    SetParametersResult { successful, reason }
}

fn try_to_set(access: &Access, wanted: Vec<raw::Parameter>) -> Result<(), Refused> {
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
    if reasons.is_empty() { access.set(&assignments) } else { Err(Refused(reasons)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_without_app_has_use_sim_time() {
        let access = Access::new(0);
        let names = || access.list().into_iter().map(|one| (one.name, one.value)).collect::<Vec<_>>();
        assert_eq!(names(), [("use_sim_time".to_owned(), "false".to_owned())]);
        let assigned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(access.set_initial(&[assigned("use_sim_time", "true")]), Ok(()));
        assert_eq!((names()[0].1.as_str(), access.time.now_ns()), ("true", Some(0)));
        assert!(access.set(&[assigned("use_sim_time", "2")]).is_err());
        let both = [assigned("use_sim_time", "false"), assigned("pan.kp", "1.0")];
        assert!(access.set(&both).is_err(), "there is no app");
        assert_eq!(names()[0].1, "true", "all or none");
    }

    #[test]
    fn middleware_matches_ros() {
        for (name, expected) in [
            (None, Some(ServiceMapping::Enhanced)),
            (Some(""), Some(ServiceMapping::Enhanced)),
            (Some("rmw_fastrtps_cpp"), Some(ServiceMapping::Enhanced)),
            (Some("rmw_cyclonedds_cpp"), Some(ServiceMapping::Cyclone)),
            (Some("rmw_connextdds"), None),
        ] {
            assert_eq!(mapping(name), expected);
        }
    }
}
