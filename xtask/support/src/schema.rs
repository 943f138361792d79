//! The part of JSON Schema 2020-12 that the schemas in `docs/` use.
//!
//! A keyword or a pattern beyond this part is an error of the schema and panics; no constraint is
//! ignored.

use serde_json::{Map, Value};

/// A schema, to which documents are compared.
pub struct Schema(Value);

impl Schema {
    /// Parses the text of a schema.
    ///
    /// # Panics
    ///
    /// If the text is not JSON.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(serde_json::from_str(text).expect("the schema is JSON"))
    }

    /// Requires that a document follows the schema.
    ///
    /// # Panics
    ///
    /// If the document violates the schema; the message lists every place.
    #[track_caller]
    pub fn assert(&self, document: &Value) {
        let violations = self.violations(document);
        assert!(violations.is_empty(), "{}\n{document}", violations.join("\n"));
    }

    /// Returns the violations of a document, each with its place.
    #[must_use]
    pub fn violations(&self, document: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.check(&self.0, document, "", &mut found);
        found
    }

    fn allows(&self, schema: &Value, value: &Value) -> bool {
        let mut found = Vec::new();
        self.check(schema, value, "", &mut found);
        found.is_empty()
    }

    fn check(&self, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
        let Value::Object(keywords) = schema else {
            if schema == &Value::Bool(false) {
                found.push(format!("{place}: is not allowed"));
            }
            return;
        };
        for (keyword, argument) in keywords {
            let is_met = match keyword.as_str() {
                "$defs" | "$schema" | "description" | "then" | "title" => true,
                "$ref" => {
                    let pointer = argument.as_str().and_then(|path| path.strip_prefix('#'));
                    let target = pointer.and_then(|path| self.0.pointer(path));
                    self.check(target.expect("a reference has a target"), value, place, found);
                    true
                }
                "type" => match argument {
                    Value::Array(types) => types.iter().any(|of| is_of_type(value, of)),
                    of => is_of_type(value, of),
                },
                "const" => value == argument,
                "enum" => elements(argument).contains(value),
                "minimum" => value.as_f64().is_none_or(|number| number >= bound(argument)),
                "exclusiveMinimum" => value.as_f64().is_none_or(|number| number > bound(argument)),
                "maximum" => value.as_f64().is_none_or(|number| number <= bound(argument)),
                "minLength" => value.as_str().is_none_or(|text| text.chars().count() >= count(argument)),
                "pattern" => value.as_str().is_none_or(|text| matches_pattern(text, string(argument))),
                "minItems" => value.as_array().is_none_or(|items| items.len() >= count(argument)),
                "maxItems" => value.as_array().is_none_or(|items| items.len() <= count(argument)),
                "required" => value.as_object().is_none_or(|members| {
                    elements(argument).iter().all(|name| members.contains_key(string(name)))
                }),
                "properties" | "additionalProperties" | "prefixItems" | "items" => {
                    self.check_parts(keywords, keyword, argument, value, place, found);
                    true
                }
                "anyOf" => elements(argument).iter().any(|option| self.allows(option, value)),
                "oneOf" => elements(argument).iter().filter(|option| self.allows(option, value)).count() == 1,
                "if" => {
                    if self.allows(argument, value) {
                        self.check(&keywords["then"], value, place, found);
                    }
                    true
                }
                other => panic!("the keyword `{other}` is not supported"),
            };
            if !is_met {
                found.push(format!("{place}: {value} violates {keyword}: {argument}"));
            }
        }
    }

    /// Checks the members of an object or the items of an array.
    fn check_parts(
        &self,
        keywords: &Map<String, Value>,
        keyword: &str,
        argument: &Value,
        value: &Value,
        place: &str,
        found: &mut Vec<String>,
    ) {
        let named = keywords.get("properties").and_then(Value::as_object);
        for (name, member) in value.as_object().into_iter().flatten() {
            let schema = match keyword {
                "properties" => argument.get(name),
                "additionalProperties" if named.is_none_or(|named| !named.contains_key(name)) => {
                    Some(argument)
                }
                _ => None,
            };
            if let Some(schema) = schema {
                self.check(schema, member, &format!("{place}/{name}"), found);
            }
        }
        let first = keywords.get("prefixItems").map_or(0, |schemas| elements(schemas).len());
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let schema = match keyword {
                "prefixItems" => elements(argument).get(index),
                "items" if index >= first => Some(argument),
                _ => None,
            };
            if let Some(schema) = schema {
                self.check(schema, item, &format!("{place}/{index}"), found);
            }
        }
    }
}

fn elements(argument: &Value) -> &[Value] {
    argument.as_array().expect("the argument is an array")
}

fn string(argument: &Value) -> &str {
    argument.as_str().expect("the argument is a string")
}

fn bound(argument: &Value) -> f64 {
    argument.as_f64().expect("the argument is a number")
}

fn count(argument: &Value) -> usize {
    argument.as_u64().and_then(|count| count.try_into().ok()).expect("the argument is a count")
}

fn is_of_type(value: &Value, of: &Value) -> bool {
    match string(of) {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("the type `{other}` does not exist"),
    }
}

/// Matches an anchored pattern of literal characters, digits `[0-9]` with an optional count `{n}`,
/// and alternatives of literal texts `(a|b)`. Without `$` at its end, the pattern may match a
/// prefix.
fn matches_pattern(mut text: &str, pattern: &str) -> bool {
    let mut pattern = pattern.strip_prefix('^').expect("the pattern is anchored");
    while !pattern.is_empty() && pattern != "$" {
        if let Some(rest) = pattern.strip_prefix("[0-9]") {
            let (digits, rest) = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
                Some((digits, rest)) => (digits.parse().expect("a count is a number"), rest),
                None => (1, rest),
            };
            let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
            match text.split_at_checked(digits) {
                Some((number, tail)) if is_number(number) => (text, pattern) = (tail, rest),
                _ => return false,
            }
        } else if let Some(group) = pattern.strip_prefix('(') {
            let (options, rest) = group.split_once(')').expect("the group ends");
            match options.split('|').find_map(|option| text.strip_prefix(option)) {
                Some(tail) => (text, pattern) = (tail, rest),
                None => return false,
            }
        } else {
            let literal = pattern.chars().next().expect("the pattern is not empty");
            assert!(!"[{.*+?\\|)$".contains(literal), "`{literal}` is not supported in `{pattern}`");
            match text.strip_prefix(literal) {
                Some(tail) => (text, pattern) = (tail, &pattern[literal.len_utf8()..]),
                None => return false,
            }
        }
    }
    pattern.is_empty() || text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(schema: &str, document: &str) -> bool {
        Schema::new(schema).violations(&serde_json::from_str(document).unwrap()).is_empty()
    }

    #[test]
    fn rejects_violations_of_each_keyword() {
        let cases = [
            (r#"{"type": "integer"}"#, "2", "2.5"),
            (r#"{"type": ["null", "string"]}"#, "null", "1"),
            (r#"{"const": "a"}"#, r#""a""#, r#""b""#),
            (r#"{"enum": ["a", 1]}"#, "1", "2"),
            (r#"{"minimum": 1}"#, "1", "0.5"),
            (r#"{"exclusiveMinimum": 1}"#, "1.5", "1"),
            (r#"{"maximum": 1}"#, "1", "2"),
            (r#"{"minLength": 2}"#, r#""µs""#, r#""µ""#),
            (r#"{"minItems": 1}"#, "[1]", "[]"),
            (r#"{"maxItems": 1}"#, "[1]", "[1, 2]"),
            (r#"{"required": ["a"]}"#, r#"{"a": 1}"#, r#"{"b": 1}"#),
            (r#"{"properties": {"a": {"type": "null"}}}"#, r#"{"a": null, "b": 1}"#, r#"{"a": 1}"#),
            (r#"{"properties": {"a": true}, "additionalProperties": false}"#, r#"{"a": 1}"#, r#"{"b": 1}"#),
            (r#"{"additionalProperties": {"type": "null"}}"#, r#"{"a": null}"#, r#"{"a": 1}"#),
            (r#"{"items": {"type": "null"}}"#, "[null, null]", "[null, 1]"),
            (r#"{"prefixItems": [{"type": "null"}], "items": {"type": "integer"}}"#, "[null, 1]", "[1, 1]"),
            (r#"{"prefixItems": [{"type": "null"}], "items": false}"#, "[null]", "[null, 1]"),
            (r#"{"anyOf": [{"minimum": 5}, {"maximum": 1}]}"#, "1", "3"),
            (r#"{"oneOf": [{"minimum": 3}, {"maximum": 5}]}"#, "6", "4"),
            (r##"{"$defs": {"n": {"type": "null"}}, "items": {"$ref": "#/$defs/n"}}"##, "[null]", "[1]"),
            (r#"{"if": {"minimum": 5}, "then": {"type": "integer"}}"#, "2.5", "5.5"),
            (r#"{"pattern": "^[0-9]{2}-(a|b)/"}"#, r#""12-b/c""#, r#""1x-b/""#),
            (r#"{"pattern": "^[0-9]Z$"}"#, r#""1Z""#, r#""1Zx""#),
        ];
        for (schema, allowed, forbidden) in cases {
            assert!(allows(schema, allowed), "{schema} rejects {allowed}");
            assert!(!allows(schema, forbidden), "{schema} allows {forbidden}");
        }
    }

    #[test]
    fn names_location_of_violation() {
        let schema = Schema::new(r#"{"properties": {"a": {"items": {"type": "null"}}}}"#);
        let violations = schema.violations(&serde_json::json!({"a": [null, 1]}));
        assert_eq!(violations, [r#"/a/1: 1 violates type: "null""#]);
    }

    #[test]
    #[should_panic(expected = "the keyword `multipleOf` is not supported")]
    fn rejects_unsupported_keywords() {
        allows(r#"{"multipleOf": 2}"#, "3");
    }
}
