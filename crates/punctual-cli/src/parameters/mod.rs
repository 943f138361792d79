//! `punctual get` and `punctual set`: the parameters of running apps.

pub(crate) mod args;
mod text;

use std::process::ExitCode;

use punctual_bridge::parameters::{Remote, Remotes, RequestError, assignments};
use serde_json::json;

use self::args::{Get, Set};
use crate::output::{message, print};
use crate::status::{BAD_INPUT, FINDING};

pub(crate) fn get(arguments: &Get) -> ExitCode {
    end(show(arguments))
}

pub(crate) fn set(arguments: &Set) -> ExitCode {
    end(change(arguments).map(|()| true))
}

/// Returns the exit status of a command that may have failed to write its result.
fn end(ended: Result<bool, String>) -> ExitCode {
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => FINDING.into(),
        Err(message) => {
            message.lines().for_each(|line| message!("error: {line}"));
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Returns whether the result was written.
fn show(arguments: &Get) -> Result<bool, String> {
    arguments.json.check()?;
    let remotes = Remotes::running().map_err(request_error)?;
    let Some(app) = &arguments.app else {
        if arguments.json.json.is_some() {
            return Err("--json prints the parameters of one app; give its name".into());
        }
        // Without any, it prints a notice.
        if remotes.found.is_empty() {
            return remotes.named("").map(|_| true).map_err(request_error);
        }
        print(&text::apps(&remotes.found));
        return Ok(true);
    };
    let remote = remotes.named(app).map_err(request_error)?;
    let parameters = remote.list().map_err(request_error)?;
    let shown = match (arguments.toml, arguments.names.is_empty()) {
        (true, _) => text::toml(remote, &parameters),
        (_, false) => text::values(&parameters, &arguments.names)?,
        (_, true) => text::table(&parameters),
    };
    Ok(arguments.json.write(|| shown, || json(remote, &parameters)))
}

fn change(arguments: &Set) -> Result<(), String> {
    let mut given = Vec::new();
    if let Some(file) = &arguments.file {
        given = assignments(file).map_err(|error| error.to_string())?;
    }
    given.extend(arguments.assignments.iter().cloned());
    let remotes = Remotes::running().map_err(request_error)?;
    let remote = remotes.named(&arguments.app).map_err(request_error)?;
    let changes = remote.set(&given).map_err(|error| match error {
        RequestError::Refused(refused) => format!("{refused}\n{remote}: nothing was changed"),
        error => request_error(error),
    })?;
    print(&text::changes(&changes));
    Ok(())
}

fn request_error(error: RequestError) -> String {
    error.to_string()
}

fn json(remote: &Remote, parameters: &[punctual_bridge::parameters::Parameter]) -> String {
    let parameters = parameters.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "type": parameter.kind,
            "unit": parameter.unit,
            "min": parameter.range.as_ref().map(|(min, _)| text::number(min)),
            "max": parameter.range.as_ref().map(|(_, max)| text::number(max)),
            "default": text::number(&parameter.default),
            "value": text::number(&parameter.value),
        })
    });
    let parameters: Vec<_> = parameters.collect();
    json!({
        "schema": "punctual-parameters/1",
        "app": remote.app(),
        "process": remote.process(),
        "parameters": parameters,
    })
    .to_string()
}
