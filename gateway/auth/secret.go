package auth

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unicode"
)

const (
	minHMACKey    = 32 // bytes: RFC 7518, section 3.2 wants the hash's size for HS256
	minDistinct   = 8  // bytes: a random text of 32 hexadecimal digits has fewer once in 10⁷ times
	minRepetition = 16 // bytes: a key that repeats less than that is no longer than what it repeats
	minLetters    = 20 // different bytes of a text without digits
	minCapitals   = 2  // places of such a text where two capitals meet: in phrases each begins a word; one random key in 700,000 has fewer
)

// ReadSecret reads an HS256 key file: the file's bytes, of a text without the line's end. It refuses keys of fewer than 32 bytes, keys that
// can be guessed (few different bytes, repetitions of something short, texts that are neither hexadecimal nor base64), and keys at whose
// end others would cut off white space, or would not: they would have another key.
func ReadSecret(path string) ([]byte, error) {
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("auth: the HS256 key: %w", err)
	}
	if isText(secret) {
		secret = bytes.TrimRight(secret, "\r\n")
	}
	if err := checkSecret(secret); err != nil {
		return nil, fmt.Errorf("auth: the HS256 key in %s %w", path, err)
	}
	return secret, nil
}

// isText reports whether a key is printable ASCII in lines: random bytes are not, but for less than one of 10¹³ keys.
func isText(secret []byte) bool {
	return !bytes.ContainsFunc(secret, func(r rune) bool { return r > '~' || r < ' ' && r != '\t' && r != '\r' && r != '\n' })
}

func checkSecret(secret []byte) error {
	switch {
	case len(secret) < minHMACKey:
		return fmt.Errorf("has fewer than %d bytes", minHMACKey)
	case len(bytes.TrimRight(secret, " \t\r\n")) < len(secret):
		return errors.New("ends with white space, which some programs cut off: write it as text, such as openssl rand -base64 48 prints, " +
			"here and at whoever signs")
	case distinct(secret) < minDistinct || period(secret) < minRepetition || isText(secret) && !isEncoded(secret):
		return errors.New("can be guessed, as it is neither hexadecimal nor base64 of random bytes: take a random one, " +
			"such as openssl rand -base64 48 prints")
	default:
		return nil
	}
}

// isEncoded reports whether a text can be random bytes in hexadecimal digits or in base64: words and phrases are not.
func isEncoded(text []byte) bool {
	if hexadecimal(text) {
		return true
	}
	var upper, lower, digit, capital bool
	met := 0
	for _, c := range bytes.TrimRight(text, "=") {
		before := capital
		capital = c >= 'A' && c <= 'Z'
		switch {
		case capital:
			upper = true
			if before {
				met++
			}
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= '0' && c <= '9':
			digit = true
		case bytes.IndexByte([]byte("+/-_\r\n"), c) < 0: // openssl breaks lines
			return false
		}
	}
	return upper && lower && (digit || distinct(text) >= minLetters && met >= minCapitals)
}

func hexadecimal(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return !unicode.Is(unicode.ASCII_Hex_Digit, r) && r != '\r' && r != '\n' })
}

// distinct is how many different bytes there are.
func distinct(secret []byte) (n int) {
	var seen [256]bool
	for _, b := range secret {
		if !seen[b] {
			seen[b] = true
			n++
		}
	}
	return n
}

// period is the length of the shortest text that repeats, whole or cut off, to the key.
func period(secret []byte) int {
	for n := 1; n < len(secret); n++ {
		if bytes.Equal(secret[n:], secret[:len(secret)-n]) {
			return n
		}
	}
	return len(secret)
}
