//! `punctual get` and `punctual set`: the parameters of running apps.

pub(crate) mod args;
mod text;

use std::process::ExitCode;

use punctual_bridge::parameters::{Remote, Remotes, RequestError, assignments};
use serde_json::json;

use self::args::{Get, Set};
use crate::output::{print, say};

/// There is no such app or parameter, or the input is rejected.
const BAD_INPUT: u8 = 2;

pub(crate) fn get(arguments: &Get) -> ExitCode {
    end(show(arguments))
}

pub(crate) fn set(arguments: &Set) -> ExitCode {
    if arguments.list {
        let get = Get { app: arguments.app.clone(), names: Vec::new(), toml: false, json: false };
        return end(show(&get));
    }
    end(change(arguments))
}

fn end(ended: Result<(), String>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            message.lines().for_each(|line| say!("error: {line}"));
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn show(arguments: &Get) -> Result<(), String> {
    let remotes = Remotes::running().map_err(request_error)?;
    let Some(app) = &arguments.app else {
        // Without any, it prints a notice.
        if remotes.found.is_empty() {
            return remotes.named("").map(drop).map_err(request_error);
        }
        print(&text::apps(&remotes.found));
        return Ok(());
    };
    let remote = remotes.named(app).map_err(request_error)?;
    let parameters = remote.list().map_err(request_error)?;
    print(&match (arguments.toml, arguments.json, arguments.names.is_empty()) {
        (true, ..) => text::toml(remote, &parameters),
        (_, true, _) => json(remote, &parameters),
        (.., false) => text::values(&parameters, &arguments.names)?,
        (.., true) => text::table(&parameters),
    });
    Ok(())
}

fn change(arguments: &Set) -> Result<(), String> {
    let mut given = Vec::new();
    if let Some(file) = &arguments.file {
        given = assignments(file).map_err(|error| error.to_string())?;
    }
    given.extend(arguments.assignments.iter().cloned());
    let remotes = Remotes::running().map_err(request_error)?;
    // The command line has one, unless it lists.
    let remote = remotes.named(arguments.app.as_deref().unwrap_or_default()).map_err(request_error)?;
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
    let object = json!({
        "schema": "punctual-parameters/1",
        "app": remote.app(),
        "process": remote.process(),
        "parameters": parameters.collect::<Vec<_>>(),
    });
    format!("{object}\n")
}
