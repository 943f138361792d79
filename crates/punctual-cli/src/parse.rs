//! Parsers shared by several commands.

use std::time::Duration;

/// Parses a time in seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| NO_SECONDS.to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => Ok(time),
        Err(_) if seconds < 0.0 => Err("a negative time; give 0 s or more".to_owned()),
        Err(_) if seconds.is_nan() => Err(NO_SECONDS.to_owned()),
        Err(_) => Err("too many seconds for a clock".to_owned()),
    }
}

const NO_SECONDS: &str = "not a number of seconds, such as 2.5";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_explains_invalid_time_text() {
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2_500)));
        for (text, why) in [
            ("x", "not a number"),
            ("", "not a number"),
            ("nan", "not a number"),
            ("-1", "a negative time"),
            ("inf", "too many seconds"),
            ("1e300", "too many seconds"),
        ] {
            assert!(seconds(text).unwrap_err().contains(why), "{text}: {}", seconds(text).unwrap_err());
        }
    }
}
