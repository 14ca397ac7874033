package main

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"noisegate.example/cmd/noisegate/internal/config"
)

// secretSettings are the variables that a secret holds in a container.
func secretSettings() config.Environment {
	return config.Environment{
		"NOISEGATE_CONTROL_DSN": "postgres://noisegate@control/noisegate?sslmode=verify-full", "NOISEGATE_AUTH_ISSUER": "https://issuer.example",
		"NOISEGATE_AUTH_AUDIENCE": "noisegate", "NOISEGATE_AUTH_KEYS_JWKS_URL": "https://issuer.example/keys",
		"NOISEGATE_DATASETS_CENSUS_DSN": "postgres://noisegate_reader@data/census?sslmode=verify-full",
	}
}

// The settings in the manifests for containers are a configuration that a gateway takes, and what they start is the gateway, closed
// in: no root, a file system that is read only, no capabilities.
func TestContainers(t *testing.T) {
	t.Run("compose", func(t *testing.T) {
		var compose struct {
			Services map[string]struct {
				Command     []string
				Environment map[string]string
				ReadOnly    bool     `yaml:"read_only"`
				CapDrop     []string `yaml:"cap_drop"`
				SecurityOpt []string `yaml:"security_opt"`
				Secrets     []string
			}
			Secrets map[string]struct{ File string }
		}
		parseManifest(t, "../../deploy/compose.yaml", &compose)
		for _, name := range []string{"migrate", "gateway"} {
			s := compose.Services[name]
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
				t.Errorf("%s is not closed in: %+v", name, s)
			}
			takes(t, s.Environment)
			for _, secret := range s.Secrets {
				if compose.Secrets[secret].File == "" {
					t.Errorf("%s: there is no secret %s", name, secret)
				}
			}
		}
	})
	t.Run("Kubernetes", func(t *testing.T) {
		text, err := os.ReadFile("../../deploy/kubernetes.yaml")
		if err != nil {
			t.Fatal(err)
		}
		started := 0
		for _, document := range strings.Split(string(text), "\n---\n") {
			var object struct {
				Kind string
				Data map[string]string
				Spec struct {
					Template struct {
						Spec struct {
							SecurityContext struct {
								RunAsNonRoot bool `yaml:"runAsNonRoot"`
								RunAsUser    int  `yaml:"runAsUser"`
							} `yaml:"securityContext"`
							InitContainers, Containers []struct {
								Args            []string
								SecurityContext struct {
									Escalation   *bool `yaml:"allowPrivilegeEscalation"`
									ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
									Capabilities struct{ Drop []string }
								} `yaml:"securityContext"`
							}
						}
					}
				}
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			if object.Kind == "ConfigMap" {
				takes(t, object.Data)
			}
			pod := object.Spec.Template.Spec
			for _, c := range pod.Containers {
				started++
				s := c.SecurityContext
				if s.Escalation == nil || *s.Escalation || !s.ReadOnly || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) ||
					!pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser == 0 || !slices.Equal(c.Args, []string{"serve"}) {
					t.Errorf("not closed in: %+v %+v", pod.SecurityContext, c)
				}
			}
		}
		if started != 1 {
			t.Errorf("%d containers are started", started)
		}
	})
	t.Run("image", func(t *testing.T) {
		text, err := os.ReadFile("../../deploy/Containerfile")
		if err != nil {
			t.Fatal(err)
		}
		stages := strings.Split(string(text), "\nFROM ")
		last := stages[len(stages)-1]
		if !strings.HasPrefix(last, "scratch\n") || strings.Contains(last, "RUN ") || !regexp.MustCompile(`(?m)^USER [1-9]\d*:[1-9]\d*$`).MatchString(last) {
			t.Errorf("the image has a shell, or runs as root:\n%s", last)
		}
		if out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "-n", "static").CombinedOutput(); err != nil ||
			!strings.Contains(string(out), "noisegate-static") || !strings.Contains(last, "/bin/noisegate-static /noisegate\n") {
			t.Errorf("make static: %v\n%s", err, out)
		}
	})
}

func parseManifest(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// takes wants a configuration that the loader takes whole, once the secrets are there.
func takes(t *testing.T, settings map[string]string) {
	t.Helper()
	env := secretSettings()
	maps.Copy(env, settings)
	if _, err := config.Load("", env); err != nil || len(settings) < 4 {
		t.Errorf("%v: %v", settings, err)
	}
}
