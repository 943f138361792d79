//! The values of parameters: parsing, checking and formatting.

use crate::message::Value;

/// The types of parameters: numbers and `bool`.
pub trait Number: Value + Copy + PartialOrd + 'static {
    /// The name of the type.
    const TYPE: &'static str;

    /// Returns the value as text, which [parses](Self::read) as the same value and is valid in
    /// TOML.
    fn text(self) -> String;

    /// Parses a value.
    ///
    /// # Errors
    /// The error, as the end of a sentence that begins with the text.
    fn read(text: &str) -> Result<Self, &'static str>;
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Number for $type {
            const TYPE: &'static str = stringify!($type);

            fn text(self) -> String {
                self.to_string()
            }

            fn read(text: &str) -> Result<Self, &'static str> {
                text.parse().map_err(|_| match (text.parse::<i128>(), text.parse::<f64>()) {
                    (Ok(_), _) => concat!("is not within the numbers of ", stringify!($type)),
                    (_, Ok(_)) => "is not a whole number",
                    _ => "is not a number",
                })
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($type:ident)*) => {$(
        impl Number for $type {
            const TYPE: &'static str = stringify!($type);

            fn text(self) -> String {
                // With as many digits as distinguish it from adjacent values.
                format!("{self:?}")
            }

            fn read(text: &str) -> Result<Self, &'static str> {
                let value: Self = text.parse().map_err(|_| "is not a number")?;
                if value.is_nan() {
                    return Err("is not a number");
                }
                value.is_finite().then_some(value).ok_or("is not a finite number")
            }
        }
    )*};
}

floats!(f32 f64);

impl Number for bool {
    const TYPE: &'static str = "bool";

    fn text(self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        text.parse().map_err(|_| "is neither true nor false")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_explains_invalid_text() {
        for (read, why) in [
            (u8::read("300").err(), "is not within the numbers of u8"),
            (u8::read("-1").err(), "is not within the numbers of u8"),
            (i64::read("1.5").err(), "is not a whole number"),
            (i64::read("one").err(), "is not a number"),
        ] {
            assert_eq!(read, Some(why));
        }
        for (text, why) in [
            ("NaN", "is not a number"),
            ("-nan", "is not a number"),
            ("", "is not a number"),
            ("1,5", "is not a number"),
            ("inf", "is not a finite number"),
            ("-infinity", "is not a finite number"),
            ("1e400", "is not a finite number"),
        ] {
            assert_eq!(f64::read(text), Err(why), "{text}");
        }
        assert_eq!(f32::read("1e39"), Err("is not a finite number"), "of its type");
        assert_eq!(bool::read("1"), Err("is neither true nor false"));
    }

    proptest::proptest! {
        #[test]
        fn text_represents_exact_value(double: f64, single: f32, signed: i64, unsigned: u64) {
            let is_same = double.is_finite() == f64::read(&double.text()).is_ok_and(|it| it.to_bits() == double.to_bits());
            proptest::prop_assert!(is_same, "{}", double);
            let is_same = single.is_finite() == f32::read(&single.text()).is_ok_and(|it| it.to_bits() == single.to_bits());
            proptest::prop_assert!(is_same, "{}", single);
            proptest::prop_assert_eq!(i64::read(&signed.text()), Ok(signed));
            proptest::prop_assert_eq!(u64::read(&unsigned.text()), Ok(unsigned));
        }
    }
}
