//! Conversion between parameters and ROS 2 parameter values.

use punctual_bridge::parameters::Parameter;
use ros2_client::parameters::raw::{FloatingPointRange, IntegerRange, ParameterDescriptor};
use ros2_client::parameters::{ParameterType, ParameterValue};

/// Returns the present value. A large `u64`, which does not fit in a ROS integer, becomes a string.
pub(crate) fn value(parameter: &Parameter) -> ParameterValue {
    let text = &parameter.value;
    let value = match parameter.kind.as_str() {
        "bool" => text.parse().ok().map(ParameterValue::Boolean),
        "f32" | "f64" => text.parse().ok().map(ParameterValue::Double),
        _ => text.parse().ok().map(ParameterValue::Integer),
    };
    value.unwrap_or_else(|| ParameterValue::String(text.clone()))
}

/// Returns the text that assigns `wanted` to a parameter of this type.
///
/// # Errors
/// The reason why it cannot be assigned.
pub(crate) fn text(kind: &str, wanted: &ParameterValue) -> Result<String, String> {
    match (kind, wanted) {
        ("bool", ParameterValue::Boolean(value)) => Ok(value.to_string()),
        // `ros2 param set` treats input without a decimal point as an integer.
        ("f32" | "f64", ParameterValue::Integer(value)) => Ok(value.to_string()),
        ("f32" | "f64", ParameterValue::Double(value)) => Ok(format!("{value:?}")),
        ("u64", ParameterValue::String(value)) => Ok(value.clone()),
        (_, ParameterValue::Integer(value)) if kind != "bool" => Ok(value.to_string()),
        (_, ParameterValue::NotSet) => Err("a parameter cannot be removed".into()),
        (_, other) => Err(format!("its type is {kind}, and not {}", name(other.to_parameter_type()))),
    }
}

fn name(kind: ParameterType) -> &'static str {
    match kind {
        ParameterType::NotSet => "none",
        ParameterType::Bool => "bool",
        ParameterType::Integer => "integer",
        ParameterType::Double => "double",
        ParameterType::String => "string",
        ParameterType::ByteArray
        | ParameterType::BoolArray
        | ParameterType::IntegerArray
        | ParameterType::DoubleArray
        | ParameterType::StringArray => "array",
    }
}

/// Returns the descriptor.
pub(crate) fn descriptor(parameter: &Parameter) -> ParameterDescriptor {
    let Parameter { kind, unit, range, default, .. } = parameter;
    let value = value(parameter);
    let unit = unit.as_deref().map_or_else(String::new, |unit| format!(" {unit}"));
    let mut descriptor = ParameterDescriptor {
        r#type: value.to_parameter_type() as u8,
        description: format!("{kind}, {default}{unit} by default"),
        ..unknown(&parameter.name)
    };
    let Some((min, max)) = range else { return descriptor };
    descriptor.additional_constraints = format!("{min} to {max}{unit}");
    if let ParameterValue::Double(_) = value {
        if let (Ok(from_value), Ok(to_value)) = (min.parse(), max.parse()) {
            descriptor.floating_point_range = vec![FloatingPointRange { from_value, to_value, step: 0.0 }];
        }
    } else if let (Ok(from_value), Ok(to_value)) = (min.parse(), max.parse()) {
        descriptor.integer_range = vec![IntegerRange { from_value, to_value, step: 1 }];
    }
    descriptor
}

/// Returns the descriptor of a nonexistent parameter.
pub(crate) fn unknown(name: &str) -> ParameterDescriptor {
    ParameterDescriptor {
        name: name.to_owned(),
        r#type: ParameterType::NotSet as u8,
        description: String::new(),
        additional_constraints: String::new(),
        read_only: false,
        dynamic_typing: false,
        floating_point_range: vec![],
        integer_range: vec![],
    }
}

/// Returns the names and the groups that `list_parameters` returns for these prefixes and this
/// depth, by the rules of rclcpp: a prefix matches itself and all names below it. Of the names
/// below it, or of all names without a prefix, those with fewer dots than the depth are returned,
/// or all if the depth is 0.
pub(crate) fn listed(
    parameters: &[Parameter],
    prefixes: &[String],
    depth: u64,
) -> (Vec<String>, Vec<String>) {
    let is_within = |below: &str| depth == 0 || (below.matches('.').count() as u64) < depth;
    let is_below = |name: &str, prefix: &String| match name.strip_prefix(prefix.as_str()) {
        Some("") => true,
        Some(below) => below.starts_with('.') && is_within(below),
        None => false,
    };
    let is_listed = |name: &str| match prefixes {
        [] => is_within(name),
        prefixes => prefixes.iter().any(|prefix| is_below(name, prefix)),
    };
    let names = parameters.iter().map(|parameter| &parameter.name).filter(|name| is_listed(name));
    let names: Vec<String> = names.cloned().collect();
    let mut groups: Vec<String> = Vec::new();
    for (group, _) in names.iter().filter_map(|name| name.rsplit_once('.')) {
        if groups.iter().all(|known| known != group) {
            groups.push(group.to_owned());
        }
    }
    (names, groups)
}

#[cfg(test)]
mod tests {
    use punctual_bridge::Parameters;
    use punctual_bridge::parameters::list;

    use super::*;

    #[derive(Clone, Copy, Parameters)]
    struct Gains {
        #[parameter(default = 1.0, range = 0.0..=4.0, unit = "A/rad")]
        kp: f64,
    }

    fn parameter(name: &str, kind: &str, value: &str, range: Option<(&str, &str)>) -> Parameter {
        let mut parameter = list(&Gains::DEFAULT).remove(0);
        (parameter.name, parameter.kind) = (name.into(), kind.into());
        parameter.range = range.map(|(min, max)| (min.to_owned(), max.to_owned()));
        (parameter.default, parameter.value) = (value.into(), value.into());
        parameter
    }

    #[test]
    fn round_trips_config_values() {
        for (kind, text_there, wanted) in [
            ("bool", "true", ParameterValue::Boolean(true)),
            ("f32", "0.1", ParameterValue::Double(0.1)),
            ("f64", "1e-7", ParameterValue::Double(1e-7)),
            ("i8", "-128", ParameterValue::Integer(-128)),
            ("u64", "18446744073709551615", ParameterValue::String("18446744073709551615".into())),
        ] {
            assert_eq!(value(&parameter("p", kind, text_there, None)), wanted);
            assert_eq!(text(kind, &wanted).unwrap(), text_there);
        }
        assert_eq!(text("f64", &ParameterValue::Integer(2)).unwrap(), "2");
    }

    #[test]
    fn rejects_other_types() {
        for (kind, wanted, why) in [
            ("f64", ParameterValue::Boolean(true), "its type is f64, and not bool"),
            ("u8", ParameterValue::Double(1.0), "its type is u8, and not double"),
            ("bool", ParameterValue::Integer(1), "its type is bool, and not integer"),
            ("f32", ParameterValue::DoubleArray(vec![1.0]), "its type is f32, and not array"),
            ("i64", ParameterValue::String("1".into()), "its type is i64, and not string"),
            ("f64", ParameterValue::NotSet, "a parameter cannot be removed"),
        ] {
            assert_eq!(text(kind, &wanted).unwrap_err(), why);
        }
    }

    #[test]
    fn parameter_descriptors_have_range() {
        let gain = descriptor(&parameter("pan.kp", "f64", "1.0", Some(("0.0", "4.0"))));
        assert_eq!((gain.name.as_str(), gain.r#type), ("pan.kp", 3));
        let range = &gain.floating_point_range[0];
        assert_eq!((range.from_value, range.to_value, range.step), (0.0, 4.0, 0.0));
        assert_eq!(gain.description, "f64, 1.0 A/rad by default");
        assert_eq!(gain.additional_constraints, "0.0 to 4.0 A/rad");
        let window = descriptor(&parameter("window", "u16", "8", Some(("1", "64"))));
        let range = &window.integer_range[0];
        assert_eq!((window.r#type, range.from_value, range.to_value, range.step), (2, 1, 64, 1));
        assert!(window.floating_point_range.is_empty() && gain.integer_range.is_empty());
        assert_eq!(descriptor(&parameter("on", "bool", "true", None)).r#type, 1);
    }

    #[test]
    fn lists_as_rclcpp_does() {
        let all =
            ["kp", "pan.kp", "pan.limit.low", "panorama"].map(|name| parameter(name, "f64", "1.0", None));
        let listed = |prefixes: &[&str], depth| {
            let prefixes: Vec<String> = prefixes.iter().map(|&prefix| prefix.into()).collect();
            listed(&all, &prefixes, depth)
        };
        let (names, groups) = listed(&[], 0);
        assert_eq!((names.len(), groups), (4, vec!["pan".to_owned(), "pan.limit".to_owned()]));
        assert_eq!(listed(&[], 1).0, ["kp", "panorama"]);
        assert_eq!(listed(&["pan"], 0).0, ["pan.kp", "pan.limit.low"]);
        assert_eq!(listed(&["pan"], 2).0, ["pan.kp"]);
        assert_eq!(listed(&["kp", "nothing"], 1).0, ["kp"]);
    }
}
