//! The alerts for Prometheus and the dashboard for Grafana in `docs/` use metrics, labels and
//! functions that exist.
//!
//! This is not `promtool`, which is not packaged everywhere: it accepts the small part of the two
//! languages that these files need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::tests::text_of;
use crate::top::figures::tests::{about, snapshot};

/// Functions and operators of PromQL that the files use.
const WORDS: [&str; 10] = [
    "and",
    "by",
    "histogram_quantile",
    "increase",
    "label_values",
    "le",
    "max_over_time",
    "rate",
    "sum",
    "or",
];
/// Variables of Grafana itself.
const GRAFANA: [&str; 2] = ["__range", "__rate_interval"];

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The labels of each metric.
type Metrics = BTreeMap<String, BTreeSet<String>>;

/// Returns the exported metrics, buckets of histograms included.
fn exported() -> Metrics {
    let (snapshot, about) = (snapshot(Instant::now(), &[&[1_000]]), about(&["task"]));
    let text = text_of(&about, &snapshot);
    let mut metrics = Metrics::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once('{').unwrap();
        let (labels, _) = rest.rsplit_once('}').unwrap();
        let labels = labels.split(',').map(|label| label.split('=').next().unwrap().to_owned());
        metrics.entry(name.to_owned()).or_default().extend(labels);
    }
    metrics
}

/// Splits an expression into words, numbers, strings and other characters.
fn tokens(expression: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
        let length = match first {
            '"' => rest[1..].find('"').expect("the string ends") + 2,
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Checks an expression; returns its metrics.
fn check(expression: &str, metrics: &Metrics, variables: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let tokens = tokens(expression);
    let (mut open, mut used, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for token in &tokens {
        let closes = |opening: &str| format!("{token} does not close {opening:?}");
        match token.as_str() {
            "(" | "[" | "{" => open.push(token.as_str()),
            ")" | "]" | "}" => {
                let pair = format!("{}{token}", open.pop().unwrap_or_default());
                if !["()", "[]", "{}"].contains(&pair.as_str()) {
                    return Err(closes(&pair));
                }
            }
            "," | ">" | "=" | "~" => {}
            string if string.starts_with('"') => words.extend(string.trim_matches('"').strip_prefix('$')),
            word if word.starts_with('$') => words.push(&word[1..]),
            word if metrics.contains_key(word) => used.push(word.to_owned()),
            word if WORDS.contains(&word) || word.parse::<f64>().is_ok() => {}
            word if open.last() == Some(&"[") && word.ends_with('m') => {
                word[..word.len() - 1].parse::<u32>().map_err(|error| format!("{word}: {error}"))?;
            }
            word if metrics.values().any(|labels| labels.contains(word)) => {
                let metric = used.last();
                // `by (…)` precedes the metric.
                if metric.is_some_and(|metric| !metrics[metric].contains(word)) {
                    return Err(format!("{metric:?} has no label {word}"));
                }
            }
            other => return Err(format!("unknown: {other}")),
        }
    }
    if !open.is_empty() {
        return Err(format!("{open:?} is not closed"));
    }
    match words.iter().find(|word| !variables.contains(**word) && !GRAFANA.contains(word)) {
        Some(word) => Err(format!("there is no variable {word}")),
        None if used.is_empty() => Err("no metric".to_owned()),
        None => Ok(used),
    }
}

/// Returns name, expression and summary of each alert.
fn alerts(rules: &str) -> Result<Vec<[String; 3]>, String> {
    let mut lines = rules.lines().filter(|line| !line.starts_with('#')).peekable();
    let mut take = |prefix: &str| match lines.peek() {
        Some(line) if line.starts_with(prefix) => Ok(Some(lines.next().unwrap()[prefix.len()..].to_owned())),
        Some(line) => Err(format!("{prefix:?} expected instead of {line:?}")),
        None => Ok(None),
    };
    let mut alerts = Vec::new();
    for line in ["groups:", "- name: punctual", "  rules:"] {
        take(line)?;
    }
    while let Some(name) = take("  - alert: ")? {
        let expression = take("    expr: ")?.ok_or("an alert without expression")?;
        if let Ok(time) = take("    for: ") {
            let minutes = time.as_deref().and_then(|time| time.strip_suffix('m'));
            minutes
                .and_then(|minutes| minutes.parse::<u32>().ok())
                .ok_or_else(|| format!("{time:?} is no time"))?;
        }
        take("    labels:")?;
        let severity = take("      severity: ")?;
        if !matches!(severity.as_deref(), Some("warning" | "critical")) {
            return Err(format!("severity {severity:?}"));
        }
        take("    annotations:")?;
        let summary = take("      summary: ")?.ok_or("an alert without summary")?;
        let is_quoted = summary.starts_with('"') && summary.ends_with('"');
        // A plain scalar of YAML has neither, and a flow mapping would begin with a brace.
        if !is_quoted && (summary.contains(": ") || summary.contains(" #") || summary.starts_with('{')) {
            return Err(format!("the summary needs quotes: {summary}"));
        }
        alerts.push([name, expression, summary]);
    }
    Ok(alerts)
}

#[test]
fn alerts_use_exported_metrics_and_labels() {
    let alerts = alerts(&file("prometheus-rules.yml")).unwrap();
    let metrics = exported();
    for [name, expression, summary] in &alerts {
        let used =
            check(expression, &metrics, &BTreeSet::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
        for label in summary.split("$labels.").skip(1) {
            let label: String = label.chars().take_while(|c| c.is_ascii_lowercase()).collect();
            assert!(metrics[&used[0]].contains(&label), "{name}: {} has no label {label}", used[0]);
        }
    }
    let names: BTreeSet<_> = alerts.iter().map(|[name, ..]| name).collect();
    assert!(names.len() == alerts.len() && names.len() >= 9);
}

#[test]
fn dashboard_uses_exported_metrics_and_shows_all() {
    let dashboard: Value = serde_json::from_str(&file("grafana-dashboard.json")).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let string = |value: &Value| value.as_str().unwrap().to_owned();
    let metrics = exported();
    let variables = list(&dashboard["templating"]["list"]);
    let names: BTreeSet<String> = variables.iter().map(|variable| string(&variable["name"])).collect();
    for variable in variables.iter().filter(|variable| variable["type"] == "query") {
        check(&string(&variable["query"]), &metrics, &names)
            .unwrap_or_else(|error| panic!("{variable}: {error}"));
    }
    let (mut shown, mut cells, mut ids) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for panel in list(&dashboard["panels"]) {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels have one number");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + w <= 24, "{}", panel["title"]);
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{} covers another panel", panel["title"]);
        }
        for target in list(&panel["targets"]) {
            let used = check(&string(&target["expr"]), &metrics, &names);
            let used = used.unwrap_or_else(|error| panic!("{}: {error}", panel["title"]));
            for label in string(&target["legendFormat"]).split("{{").skip(1) {
                let label = label.split("}}").next().unwrap();
                assert!(metrics[&used[0]].contains(label), "{}: no label {label}", panel["title"]);
            }
            shown.extend(used);
        }
    }
    let is_part = |name: &str| name.ends_with("_seconds_sum") || name.ends_with("_seconds_count");
    let missing: Vec<_> =
        metrics.into_keys().filter(|name| !is_part(name) && !shown.contains(name)).collect();
    assert_eq!(missing, [""; 0], "metrics without a panel");
}

#[test]
fn check_rejects_wrong_expressions_and_rules() {
    let metrics = exported();
    for (expression, why) in [
        ("punctual_misses_total > 0", "unknown: punctual_misses_total"),
        ("increase(punctual_stale[5m] > 0", "not closed"),
        ("increase(punctual_stale[5x]) > 0", "unknown: 5x"),
        ("punctual_stale{task=~\"$app\"}", "no label task"),
        ("punctual_stale{app=~\"$other\"}", "no variable other"),
        ("sum(1)", "no metric"),
    ] {
        let error = check(expression, &metrics, &BTreeSet::from(["app".to_owned()])).unwrap_err();
        assert!(error.contains(why), "{expression}: {error}");
    }
    let rules = file("prometheus-rules.yml");
    for (from, to) in [("expr:", "exp:"), ("critical", "high"), ("for: 5m", "for: five"), ("\"{{", "{{")] {
        assert!(alerts(&rules.replacen(from, to, 1)).is_err(), "{to}");
    }
}
