//! The arguments after `--ros-args`: names, remapping rules and parameters, as rcl reads them.
//!
//! | argument | behavior |
//! |---|---|
//! | `-r __node:=NAME`, `-r __ns:=/NAMESPACE` | name and namespace of the node |
//! | `-r FROM:=TO`, also with `rostopic://` or `rosservice://` | another name of a topic or service |
//! | `-p qos_overrides./TOPIC.publisher.POLICY:=VALUE`, or `.subscription.` | quality of service |
//! | `-p NAME:=VALUE` | the initial value of `use_sim_time`, or of a parameter of the app |
//!
//! A rule or parameter that begins with `NODE:` applies to a node of this name only. Of several
//! rules that match, the first one applies. Others, such as `--params-file`, are rejected.

use punctual_bridge::transport::{Direction, TopicInfo};
use punctual_bridge::{Durability, Reliability};
use punctual_transport::node_name;

/// The begin of the names of parameters for the quality of service.
const QOS_OVERRIDES: &str = "qos_overrides.";

/// The names and values that the arguments request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The node's name.
    pub(crate) name: String,
    /// The node's namespace.
    pub(crate) namespace: String,
    /// The initial values of parameters of the app.
    pub(crate) assignments: Vec<(String, String)>,
    rules: Vec<Rule>,
    overrides: Vec<Override>,
}

/// The kind of names to which a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Topics,
    Services,
    Both,
}

/// A remapping rule with complete names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    scope: Scope,
    from: String,
    to: String,
}

/// Another policy of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Override {
    topic: String,
    direction: Direction,
    policy: String,
    value: String,
}

impl Arguments {
    /// Reads the operands after the app: `[NODE] [--ros-args ...]`.
    ///
    /// # Errors
    /// The reason why they are invalid.
    pub(crate) fn new(app: &str, operands: &[String]) -> Result<Self, String> {
        let (mut node, mut rules, mut parameters) = (None, vec![], vec![]);
        let (mut is_ros, mut words) = (false, operands.iter().map(String::as_str));
        while let Some(word) = words.next() {
            match word {
                "--ros-args" => is_ros = true,
                "--" if is_ros => is_ros = false,
                _ if !is_ros && node.is_none() && !word.starts_with('-') => node = Some(word),
                "-r" | "--remap" | "-p" | "--param" if is_ros => {
                    let text = words.next().ok_or_else(|| format!("{word} has no value"))?;
                    let assignment = text.split_once(":=").ok_or_else(|| format!("{text:?} has no `:=`"))?;
                    if word.starts_with("-r") || word == "--remap" {
                        rules.push(assignment);
                    } else {
                        parameters.push(assignment);
                    }
                }
                _ => return Err(format!("the argument {word:?} is not supported")),
            }
        }
        let mut name = node.map_or_else(|| node_name(app), str::to_owned);
        let special = |name: &str, keys: &[&str]| {
            let mut matching = rules.iter().filter_map(|(from, to)| Some((rule_of(from, name)?, *to)));
            matching.find(|(from, _)| keys.contains(from)).map(|(_, to)| to.to_owned())
        };
        name = special(&name, &["__node", "__name"]).unwrap_or(name);
        let namespace = special(&name, &["__ns"]).unwrap_or_else(|| "/".to_owned());
        let mut arguments = Self { name, namespace, assignments: vec![], rules: vec![], overrides: vec![] };
        for (from, to) in &rules {
            let Some(from) = rule_of(from, &arguments.name) else { continue };
            if !from.starts_with("__") {
                let rule = arguments.rule(from, to)?;
                arguments.rules.push(rule);
            }
        }
        for (name, value) in parameters {
            let Some(name) = rule_of(name, &arguments.name) else { continue };
            arguments.parameter(name, value)?;
        }
        Ok(arguments)
    }

    fn rule(&self, from: &str, to: &str) -> Result<Rule, String> {
        let (scope, from, scheme) = match from.split_once("://") {
            None => (Scope::Both, from, ""),
            Some(("rostopic", from)) => (Scope::Topics, from, "rostopic://"),
            Some(("rosservice", from)) => (Scope::Services, from, "rosservice://"),
            Some(_) => return Err(format!("the remapping of {from:?} has an unknown scheme")),
        };
        let to = to.strip_prefix(scheme).unwrap_or(to);
        Ok(Rule { scope, from: self.expand(from)?, to: self.expand(to)? })
    }

    /// Returns the complete name: relative names are in the namespace, those with `~` below the
    /// node.
    fn expand(&self, name: &str) -> Result<String, String> {
        let base = self.namespace.trim_end_matches('/');
        let text = name.replace("{node}", &self.name);
        let text = text.replace("{ns}", &self.namespace).replace("{namespace}", &self.namespace);
        let full = match (text.strip_prefix('~'), text.starts_with('/')) {
            (Some(rest), _) => format!("{base}/{}{rest}", self.name),
            (None, true) => text,
            (None, false) => format!("{base}/{text}"),
        };
        let is_part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let is_name = full.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_part));
        if is_name { Ok(full) } else { Err(format!("{name:?} is not a valid name of a topic or service")) }
    }

    fn parameter(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some(rest) = name.strip_prefix(QOS_OVERRIDES) else {
            let value = match value.trim_matches(['"', '\'']) {
                // As in YAML.
                "True" | "TRUE" => "true",
                "False" | "FALSE" => "false",
                value => value,
            };
            self.assignments.push((name.to_owned(), value.to_owned()));
            return Ok(());
        };
        let invalid = || format!("{name:?} must look like {QOS_OVERRIDES}/TOPIC.publisher.POLICY");
        let (rest, policy) = rest.rsplit_once('.').ok_or_else(invalid)?;
        let (topic, direction) = rest.rsplit_once('.').ok_or_else(invalid)?;
        let direction = match direction {
            "publisher" => Direction::Outgoing,
            "subscription" => Direction::Incoming,
            _ => return Err(invalid()),
        };
        let (topic, policy, value) = (topic.to_owned(), policy.to_owned(), value.to_owned());
        self.overrides.push(Override { topic, direction, policy, value });
        Ok(())
    }

    /// Returns the name of a service.
    pub(crate) fn service(&self, name: &str) -> String {
        self.remap(Scope::Services, name)
    }

    /// Returns the name of a topic.
    pub(crate) fn topic(&self, name: &str) -> String {
        self.remap(Scope::Topics, name)
    }

    fn remap(&self, scope: Scope, name: &str) -> String {
        let applies = |rule: &&Rule| rule.from == name && (rule.scope == scope || rule.scope == Scope::Both);
        self.rules.iter().find(applies).map_or(name, |rule| &rule.to).to_owned()
    }

    /// Changes the names and the quality of service of the topics.
    ///
    /// # Errors
    /// The reason why a quality of service is invalid.
    pub(crate) fn apply(&self, topics: &mut [TopicInfo]) -> Result<(), String> {
        for topic in topics.iter_mut() {
            topic.name = self.topic(&topic.name);
        }
        for Override { topic, direction, policy, value } in &self.overrides {
            let is_meant = |info: &&mut TopicInfo| info.name == *topic && info.direction == *direction;
            let info = topics.iter_mut().find(is_meant);
            let info = info.ok_or_else(|| format!("{QOS_OVERRIDES}{topic}: the node has no such topic"))?;
            let qos = &mut info.qos;
            match (policy.as_str(), value.as_str()) {
                ("reliability", "reliable") => qos.reliability = Reliability::Reliable,
                ("reliability", "best_effort") => qos.reliability = Reliability::BestEffort,
                ("reliability", "best_available") => qos.reliability = Reliability::BestAvailable,
                ("durability", "volatile") => qos.durability = Durability::Volatile,
                ("durability", "transient_local") => qos.durability = Durability::TransientLocal,
                ("history", "keep_last") => {}
                ("depth", depth) => {
                    let depth = depth.parse().ok().filter(|depth| *depth > 0);
                    qos.depth =
                        depth.ok_or_else(|| format!("the depth {value:?} of {topic} is no number"))?;
                }
                _ => return Err(format!("the {policy} {value:?} of {topic} is not supported")),
            }
        }
        Ok(())
    }
}

/// Returns a rule or parameter without the name of the node to which it applies; `None` if that is
/// another node.
fn rule_of<'a>(text: &'a str, node: &str) -> Option<&'a str> {
    match text.split_once(':') {
        Some((_, rest)) if rest.starts_with("//") => Some(text),
        Some((wanted, rest)) => (wanted == node).then_some(rest),
        None => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use punctual_bridge::messages::Vector3;
    use punctual_bridge::{Bridge, Incoming, Topic, TransportServer};

    use super::*;

    fn read(words: &str) -> Result<Arguments, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Arguments::new("my-app", &words)
    }

    fn topic(words: &str, name: &str) -> String {
        read(words).unwrap().topic(name)
    }

    #[test]
    fn node_has_name_and_namespace() {
        let named = |words| read(words).map(|read| (read.name, read.namespace)).unwrap();
        let expect = |name: &str, namespace: &str| (name.to_owned(), namespace.to_owned());
        assert_eq!(named(""), expect("my_app", "/"));
        assert_eq!(named("gimbal"), expect("gimbal", "/"));
        assert_eq!(named("gimbal --ros-args"), expect("gimbal", "/"));
        assert_eq!(named("--ros-args -r __node:=a -r __node:=b --"), expect("a", "/"));
        assert_eq!(named("--ros-args --remap __name:=a --ros-args -r __ns:=/x/y"), expect("a", "/x/y"));
        assert_eq!(named("--ros-args -r other:__node:=a -r my_app:__ns:=/x"), expect("my_app", "/x"));
        // The name after the remapping counts.
        assert_eq!(named("--ros-args -r __node:=a -r my_app:__ns:=/x -r a:__ns:=/y"), expect("a", "/y"));
        assert_eq!(named("--ros-args -r __node:=a -- gimbal"), expect("a", "/"));
    }

    #[test]
    fn remaps_complete_names() {
        assert_eq!(topic("--ros-args -r angles:=pose", "/angles"), "/pose");
        assert_eq!(topic("--ros-args -r /angles:=pose -r __ns:=/left", "/angles"), "/left/pose");
        assert_eq!(
            topic("--ros-args -r angles:=pose -r __ns:=/left", "/angles"),
            "/angles",
            "it is absolute"
        );
        assert_eq!(topic("--ros-args -r rostopic:///angles:=rostopic:///pose", "/angles"), "/pose");
        assert_eq!(topic("--ros-args -r rosservice:///angles:=/pose", "/angles"), "/angles");
        assert_eq!(topic("--ros-args -r my_app:rostopic:///angles:=/pose", "/angles"), "/pose");
        assert_eq!(topic("--ros-args -r other:/angles:=/pose", "/angles"), "/angles");
        assert_eq!(topic("--ros-args -r my_app:/angles:=/pose", "/angles"), "/pose");
        assert_eq!(topic("--ros-args -r /angles:=~/pose -r __ns:=/left", "/angles"), "/left/my_app/pose");
        assert_eq!(topic("--ros-args -r /angles:=/{node}/pose", "/angles"), "/my_app/pose");
        assert_eq!(topic("--ros-args -r /angles:=/a -r /angles:=/b -r /a:=/c", "/angles"), "/a", "once");
        let both = read("--ros-args -r ~/list:=/list -r rosservice://~/get:=/get").unwrap();
        assert_eq!(
            (both.service("/my_app/list"), both.service("/my_app/get")),
            ("/list".into(), "/get".into())
        );
    }

    #[test]
    fn rejects_malformed_arguments() {
        for words in [
            "gimbal other",
            "--verbose",
            "-r a:=b",
            "--ros-args -r",
            "--ros-args -r a",
            "--ros-args -r :=",
            "--ros-args -r a:=",
            "--ros-args -r :=b",
            "--ros-args -r a:=b/",
            "--ros-args -r f!oo:=bar",
            "--ros-args -r f{oo:=bar",
            "--ros-args -r rosparam://a:=b",
            "--ros-args -p speed",
            "--ros-args -p qos_overrides./a.reader.depth:=1",
            "--ros-args -p qos_overrides.depth:=1",
            "--ros-args --params-file robot.yaml",
            "--ros-args --log-level debug",
        ] {
            assert!(read(words).is_err(), "{words}");
        }
    }

    #[test]
    fn parameters_are_assignments() {
        let arguments =
            read("--ros-args -p pan.kp:=2.5 -p my_app:mode:='fast' -p other:x:=1 -p use_sim_time:=True");
        let arguments = arguments.unwrap();
        let expected = [("pan.kp", "2.5"), ("mode", "fast"), ("use_sim_time", "true")];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(arguments.assignments, expected);
    }

    #[test]
    fn overrides_quality_of_service() {
        static ANGLES: Topic<Vector3, 4> = Topic::new("/angles");
        static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3::default());
        let name = format!("arguments-{}", std::process::id());
        let server = TransportServer::new(&name).subscribe(SETPOINT.subscribe().unwrap());
        let _bridge = Bridge::new().topic(&ANGLES).diagnostics(false).transports(server).start().unwrap();
        let app = punctual_bridge::transport::Attachment::open(&name, "test").unwrap();
        let apply = |words: &str| {
            let mut topics = app.topics().to_vec();
            read(&format!("--ros-args {words}"))?.apply(&mut topics)?;
            Ok::<_, String>(topics.into_iter().map(|topic| topic.qos.to_string()).collect::<Vec<_>>())
        };
        let defaults = ["reliable, volatile, keep last 10", "best available, volatile, keep last 10"];
        assert_eq!(apply("").unwrap(), defaults);
        let latched = apply(
            "-p qos_overrides./pose.publisher.durability:=transient_local \
             -p qos_overrides./pose.publisher.depth:=1 -p qos_overrides./pose.publisher.history:=keep_last \
             -p qos_overrides./setpoint.subscription.reliability:=best_effort -r angles:=pose",
        );
        let expected = ["reliable, transient local, keep last 1", "best effort, volatile, keep last 10"];
        assert_eq!(latched.unwrap(), expected);
        for (words, part) in [
            ("/angles.subscription.depth:=1", "no such topic"),
            ("/other.publisher.depth:=1", "no such topic"),
            ("/angles.publisher.depth:=0", "depth"),
            ("/angles.publisher.history:=keep_all", "keep_all"),
            ("/angles.publisher.deadline:=1", "deadline"),
        ] {
            let error = apply(&format!("-p qos_overrides.{words}")).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
