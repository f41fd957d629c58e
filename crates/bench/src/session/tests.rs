//! Claims about `session`, each as small as it can be.

use super::*;

#[test]
fn the_first_column_is_read_within_its_row() {
    assert_eq!(first_column(b"\0\x01\0\0\0\x0242"), Some("42".to_owned()));
    assert_eq!(first_column(b"\0\x01\xff\xff\xff\xff"), None);
    assert_eq!(first_column(b"\0\x01\0\0\0\x0942"), None);
    assert_eq!(first_column(b"\0"), None);
}
