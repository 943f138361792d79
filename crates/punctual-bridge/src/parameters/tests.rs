//! Parameters that are declared, assigned and refused.

use proptest::prelude::*;

use super::*;
use crate::message::{Kind, Scalar};

#[derive(Debug, Clone, Copy, PartialEq, punctual_macros::Parameters)]
pub(super) struct Axis {
    #[parameter(default = 1.25, range = 0.0..=10.0, unit = "A/rad")]
    pub(super) kp: f64,
    #[parameter(default = -2, range = -5..=5)]
    offset: i8,
}

#[derive(Debug, Clone, Copy, PartialEq, punctual_macros::Parameters)]
#[message(name = "gimbal_msgs/msg/Gains")]
pub(super) struct Gains {
    #[parameter(nested)]
    pub(super) pan: Axis,
    #[parameter(nested)]
    tilt: Axis,
    #[parameter(default = 0.5, range = 0.25..=1.0)]
    gain: f32,
    #[parameter(default = false)]
    pub(super) on: bool,
}

const NAMES: [&str; 6] = ["pan.kp", "pan.offset", "tilt.kp", "tilt.offset", "gain", "on"];

fn refused(assignments: &[(&str, &str)]) -> Vec<String> {
    assign(&Gains::DEFAULT, assignments).expect_err("it has to be refused").0
}

#[test]
fn lists_declared_parameters() {
    let listed = list(&Gains::DEFAULT);
    let names: Vec<&str> = listed.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(names, NAMES);
    let expected = Parameter {
        name: "tilt.kp".into(),
        kind: "f64".into(),
        unit: Some("A/rad".into()),
        range: Some(("0.0".into(), "10.0".into())),
        default: "1.25".into(),
        value: "1.25".into(),
    };
    assert_eq!(listed[2], expected);
    assert_eq!((listed[5].range.clone(), listed[5].kind.as_str()), (None, "bool"));
}

#[test]
fn message_keeps_units() {
    let description = Gains::DESCRIPTION;
    assert_eq!(description.name(), "gimbal_msgs/msg/Gains");
    let Kind::Message(axis) = description.fields()[0].kind() else { panic!("it is nested") };
    let kp = axis.fields()[0];
    assert_eq!((kp.name(), kp.unit(), kp.kind()), ("kp", Some("A/rad"), Kind::Scalar(Scalar::F64)));
}

#[test]
fn assigns_given_and_keeps_other_values() {
    let changed =
        assign(&Gains::DEFAULT, &[("tilt.kp", " 2.5 "), ("on", "true"), ("pan.offset", "5")]).unwrap();
    let expected =
        Gains { pan: Axis { kp: 1.25, offset: 5 }, tilt: Axis { kp: 2.5, offset: -2 }, gain: 0.5, on: true };
    assert_eq!(changed, expected);
    let changed_lines: Vec<String> = changes(&Gains::DEFAULT, &changed)
        .into_iter()
        .map(|Change { name, before, now }| format!("{name} {before} {now}"))
        .collect();
    assert_eq!(changed_lines, ["pan.offset -2 5", "tilt.kp 1.25 2.5", "on false true"]);
}

#[test]
fn reports_every_error() {
    let reasons = refused(&[
        ("pan.kp", "10.001"),
        ("pan.offset", "1.5"),
        ("tilt.kp", "nan"),
        ("gain", "0.2"),
        ("on", "yes"),
        ("tilt", "1"),
        ("kp", "1"),
    ]);
    let existing = NAMES.join(", ");
    let expected = [
        "pan.kp: 10.001 A/rad is out of range; it takes 0.0 to 10.0 A/rad".to_owned(),
        "pan.offset: \"1.5\" is not a whole number; it takes -5 to 5".to_owned(),
        "tilt.kp: \"nan\" is not a number; it takes 0.0 to 10.0 A/rad".to_owned(),
        "gain: 0.2 is out of range; it takes 0.25 to 1.0".to_owned(),
        "on: \"yes\" is neither true nor false".to_owned(),
        format!("there is no parameter tilt; there are {existing}"),
        format!("there is no parameter kp; there are {existing}"),
    ];
    assert_eq!(reasons, expected);
    assert_eq!(refused(&[("on", "true"), ("on", "true")]), ["on is given more than once"]);
    assert_eq!(refused(&[]), [format!("nothing is given; there are {existing}")]);
}

proptest! {
    /// For any assignments: either all take effect and every value is in its range, or there is a
    /// reason for each invalid one.
    #[test]
    fn all_or_none(
        pan in proptest::num::f64::ANY,
        offset in -20_i32..20,
        gain in prop_oneof![0.0_f64..1.5, proptest::num::f64::ANY],
        unknown in proptest::option::of("[a-z.]{1,8}"),
    ) {
        let mut given = vec![
            ("pan.kp".to_owned(), pan.to_string()),
            ("tilt.offset".to_owned(), offset.to_string()),
            ("gain".to_owned(), gain.to_string()),
        ];
        let unknown = unknown.filter(|name| !NAMES.contains(&name.as_str()));
        given.extend(unknown.iter().map(|name| (name.clone(), "1".to_owned())));
        let single = gain as f32;
        let wrong = [
            !(0.0..=10.0).contains(&pan),
            !(-5..=5).contains(&offset),
            !(0.25..=1.0).contains(&single),
            unknown.is_some(),
        ];
        let wrong = wrong.into_iter().filter(|&wrong| wrong).count();
        match assign(&Gains::DEFAULT, &given) {
            Ok(changed) => {
                prop_assert_eq!(wrong, 0);
                let now = (changed.pan.kp, i32::from(changed.tilt.offset), changed.gain);
                prop_assert_eq!(now, (pan, offset, single));
                prop_assert_eq!((changed.tilt.kp, changed.pan.offset, changed.on), (1.25, -2, false));
            }
            Err(Refused(reasons)) => prop_assert_eq!(reasons.len(), wrong),
        }
    }

    #[test]
    fn no_text_is_too_strange(name in ".{0,20}", value in ".{0,20}") {
        let name = if name.is_empty() { "pan.kp".to_owned() } else { name };
        if let Ok(changed) = assign(&Gains::DEFAULT, &[(name, value)]) {
            prop_assert!((0.0..=10.0).contains(&changed.pan.kp));
        }
    }
}
