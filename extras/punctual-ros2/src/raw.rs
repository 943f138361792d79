//! Messages as bytes, which neither this program nor the library interprets.

use std::convert::Infallible;

use ros2_client::dds::rustdds::RepresentationIdentifier;
use ros2_client::dds::rustdds::bytes::Bytes;
use ros2_client::dds::rustdds::no_key::{Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter};

/// The size of the header before a message.
const HEADER_BYTES: usize = 4;

/// The bytes of a message, with its header.
pub(crate) struct Whole(pub(crate) Vec<u8>);

/// Passes the bytes on unchanged.
pub(crate) struct Raw;

impl SerializerAdapter<Whole> for Raw {
    type Error = Infallible;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(value: &Whole) -> Result<Bytes, Infallible> {
        // The library prepends the same header.
        Ok(Bytes::copy_from_slice(value.0.get(HEADER_BYTES..).unwrap_or_default()))
    }
}

impl DeserializerAdapter<Whole> for Raw {
    type Error = Infallible;
    type Decoded = Whole;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        // Encodings other than plain CDR are rejected, and counted, because of their header.
        const ALL: [RepresentationIdentifier; 6] = [
            RepresentationIdentifier::CDR_LE,
            RepresentationIdentifier::CDR_BE,
            RepresentationIdentifier::PL_CDR_LE,
            RepresentationIdentifier::PL_CDR_BE,
            RepresentationIdentifier::XCDR2_LE,
            RepresentationIdentifier::XCDR2_BE,
        ];
        &ALL
    }

    fn transform_decoded(decoded: Whole) -> Whole {
        decoded
    }
}

impl DefaultDecoder<Whole> for Raw {
    type Decoder = Self;

    const DECODER: Self = Self;
}

impl Clone for Raw {
    fn clone(&self) -> Self {
        Self
    }
}

impl Decode<'_, Whole> for Raw {
    type Error = Infallible;

    fn decode_bytes(self, bytes: &[u8], encoding: RepresentationIdentifier) -> Result<Whole, Infallible> {
        let second = match encoding {
            RepresentationIdentifier::CDR_BE => 0,
            RepresentationIdentifier::CDR_LE => 1,
            // Any encoding other than plain CDR.
            _ => 2,
        };
        Ok(Whole([&[0, second, 0, 0], bytes].concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_encoding() {
        use RepresentationIdentifier as Encoding;
        for (encoding, second) in [(Encoding::CDR_BE, 0), (Encoding::CDR_LE, 1), (Encoding::XCDR2_LE, 2)] {
            let Ok(Whole(bytes)) = Raw.decode_bytes(&[7], encoding);
            assert_eq!(bytes, [0, second, 0, 0, 7], "{encoding:?}");
        }
    }
}
